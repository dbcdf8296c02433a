package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	_ "embed"

	"github.com/mailgate/mailgate/api/web"
)

// strictPolicy is as strict as a page that runs a script and asks its own server can be.
const strictPolicy = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; base-uri 'none'; " +
	"form-action 'self'; require-trusted-types-for 'script'; trusted-types 'none'"

//go:embed testdata/witness.js
var witness string

// A player plays mailgate and the site around it: pages, the component as it is served,
// and the answers to GET /countdown/{token}.
type player struct {
	URL string

	mu     sync.Mutex
	body   string
	head   string
	cache  string
	answer string        // of GET /countdown; none: the connection breaks
	status int           // of the answer
	gate   chan struct{} // when set, answers wait until it is closed
	asked  []string      // the tokens that were asked for
}

// newPlayer serves pages with this body.
func newPlayer(t *testing.T, body string) *player {
	t.Helper()
	script, err := web.Countdown()
	if err != nil {
		t.Fatal(err)
	}
	p := &player{body: body, status: http.StatusOK}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.page)
	mux.HandleFunc("GET /elsewhere", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><title>Elsewhere</title><link rel="icon" href="data:,"><p>Elsewhere`)
	})
	mux.HandleFunc("GET /mailgate-countdown.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(script.Gzip)
	})
	mux.HandleFunc("GET /witness.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(w, witness)
	})
	mux.HandleFunc("GET /worker.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(w, `import { MailgateCountdown } from "/mailgate-countdown.js";
postMessage(MailgateCountdown.name + (globalThis.HTMLElement ? " with" : " without") + " HTMLElement");`)
	})
	mux.HandleFunc("GET /countdown/{token}", p.countdown)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

func (p *player) page(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", strictPolicy)
	if p.cache != "" {
		w.Header().Set("Cache-Control", p.cache)
	}
	fmt.Fprintf(w, `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Check your mail</title>
<script src="/witness.js"></script><script type="module" src="/mailgate-countdown.js"></script>%s</head><body>%s</body></html>`, p.head, p.body)
}

func (p *player) countdown(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.PathValue("token"))
	gate := p.gate
	p.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-r.Context().Done():
		}
	}
	p.mu.Lock()
	answer, status := p.answer, p.status
	p.mu.Unlock()
	if answer == "" {
		panic(http.ErrAbortHandler) // the connection breaks, and nothing is logged
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	fmt.Fprint(w, answer)
}

// says sets what GET /countdown answers from now on.
func (p *player) says(status int, answer string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status, p.answer = status, answer
}

// hesitates keeps answers back until the returned function is called.
func (p *player) hesitates() (goOn func()) {
	gate := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gate = gate
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.gate = nil
		close(gate)
	}
}

// questions are the tokens that were asked for, in order.
func (p *player) questions() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.asked, " ")
}

// asks is how many questions there were.
func (p *player) asks() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.asked)
}

// still is what GET /countdown says: the wait, and when it is over. The moment names a
// history: the same one as long as nothing was sent.
func still(wait int, moment string) string {
	return fmt.Sprintf(`{"rule":"mailbox","limit":"minute","wait_ms":%d,"retry_at":%q,"server_time":"2026-11-20T12:00:00.000Z"}`, wait, moment)
}

// sent is what a back end passes on of a 200, refused of a 429.
func sent(wait int, moment, token string) string {
	return fmt.Sprintf(`{"status":"sent","limit":"minute","wait_ms":%d,"retry_at":%q,"countdown":%q,"limits":%s}`, wait, moment, token, tiers)
}

func refused(limit string, wait int, moment string) string {
	return fmt.Sprintf(`{"status":429,"rule":"mailbox","limit":%q,"wait_ms":%d,"retry_at":%q,"limits":%s}`, limit, wait, moment, tiers)
}

const tiers = `[{"name":"minute","limit":1,"window_ms":60000},{"name":"hour","limit":5,"window_ms":3600000},{"name":"day","limit":10,"window_ms":86400000}]`

// moments, so that a test can say which history an answer is about.
const (
	first  = "2026-11-20T12:01:00.000Z"
	second = "2026-11-20T12:02:00.000Z"
)
