package demo

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// codeLife is how long a code of a handover may be used.
const codeLife = time.Minute

// A handover gives the keys to the console and the API page. The address of a page stays in the
// browser's history, so it has a code that gets the keys once, and never a key.
type handover struct {
	keys struct {
		API   string `json:"api"`
		Admin string `json:"admin"`
	}

	mu    sync.Mutex
	codes map[string]time.Time // until when each is valid
}

func newHandover(o Options) *handover {
	h := &handover{codes: map[string]time.Time{}}
	h.keys.API, h.keys.Admin = o.APIKey, o.AdminKey
	return h
}

// lead redirects to a page with a code in the fragment, which no server sees.
func (h *handover) lead(page string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		code, now := rand.Text(), time.Now()
		h.mu.Lock()
		for old, until := range h.codes {
			if now.After(until) {
				delete(h.codes, old)
			}
		}
		h.codes[code] = now.Add(codeLife)
		h.mu.Unlock()
		http.Redirect(w, r, page+"#code="+code, http.StatusSeeOther)
	}
}

// give answers a code with the keys.
func (h *handover) give(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Code string `json:"code"`
	}
	_ = json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&body) // without a code there are no keys
	h.mu.Lock()
	until := h.codes[body.Code]
	delete(h.codes, body.Code)
	h.mu.Unlock()
	if time.Now().After(until) {
		fail(w, http.StatusForbidden, "forbidden", "Used link", "This link was used before, or is too old. Open the page again from the sign-up page.")
		return
	}
	writeJSON(w, h.keys)
}
