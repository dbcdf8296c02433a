package demo

import (
	"context"
	"io"
	"net/http"
	"net/mail"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/html"

	"github.com/mailgate/mailgate/mailer/sandbox"
)

// pollTimeout is how long a page's request for new email is held open.
const pollTimeout = 15 * time.Second

// inbox shows the emails that the relay received. Clear hides them, so that it can be undone.
type inbox struct {
	relay *sandbox.Server
	ended context.Context // over when the program ends

	mu             sync.Mutex
	opened         map[uint64]bool
	hidden, before uint64 // emails up to this id are hidden; before is what Undo returns to
}

// A line is one email in the list.
type line struct {
	ID         uint64   `json:"id"`
	To         []string `json:"to"`
	Subject    string   `json:"subject"`
	ReceivedMS int64    `json:"received_ms"`
	Unread     bool     `json:"unread"`
	Door       string   `json:"door"` // by which it came: HTTP, SMTP, or relay if not through mailgate
}

// list answers with the emails, newest first, and the id of the newest one, hidden or not.
// With after=<id> it waits a while for a newer email. An id that is not reached yet is from
// an earlier process: that page is answered at once.
func (i *inbox) list(w http.ResponseWriter, r *http.Request) {
	if after, err := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64); err == nil && after <= i.newest() {
		ctx, cancel := context.WithTimeout(i.ended, pollTimeout)
		defer cancel()
		// After a timeout the list is as it was.
		_, _ = i.relay.WaitAfter(ctx, "", after)
	}
	writeJSON(w, struct {
		Mails  []line `json:"mails"`
		Newest uint64 `json:"newest"`
	}{i.lines(), i.newest()})
}

func (i *inbox) lines() []line {
	i.mu.Lock()
	defer i.mu.Unlock()
	lines := []line{}
	for _, mail := range slices.Backward(i.relay.List()) {
		if mail.ID > i.hidden {
			lines = append(lines, lineOf(mail, !i.opened[mail.ID]))
		}
	}
	return lines
}

// composed matches the Message-IDs of the emails that mailgate writes.
var composed = regexp.MustCompile(`^<[^@<>]+\.[0-9a-f]{32}@[^@<>]+>$`)

// lineOf returns the line of an email. Only the SMTP door adds a Received, and by HTTP mailgate writes the email.
func lineOf(mail sandbox.Message, unread bool) line {
	door := "relay"
	if mail.Header.Get("Received") != "" {
		door = "SMTP"
	} else if composed.MatchString(mail.Header.Get("Message-Id")) {
		door = "HTTP"
	}
	return line{mail.ID, mail.To, mail.Subject, mail.ReceivedMS, unread, door}
}

// newest returns the id of the newest email, 0 if there is none.
func (i *inbox) newest() uint64 {
	mails := i.relay.List()
	if len(mails) == 0 {
		return 0
	}
	return mails[len(mails)-1].ID
}

// clear hides all emails.
func (i *inbox) clear(w http.ResponseWriter, _ *http.Request) {
	newest := i.newest()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.before, i.hidden = i.hidden, newest
	writeJSON(w, struct{}{})
}

// restore undoes the last clear.
func (i *inbox) restore(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.hidden = i.before
	writeJSON(w, struct{}{})
}

// mail serves one email and marks it as read.
func (i *inbox) mail(w http.ResponseWriter, r *http.Request) {
	if mail, ok := i.find(w, r); ok {
		i.mu.Lock()
		i.opened[mail.ID] = true
		i.mu.Unlock()
		from := sender(mail)
		writeJSON(w, struct {
			line
			From     string `json:"from"`
			FromName string `json:"from_name"`
			HTML     bool   `json:"html"` // whether there is an HTML part
			Text     string `json:"text"`
			Source   string `json:"source"`
		}{lineOf(mail, false), from.Address, from.Name, mail.HTML != "", mail.Text, string(mail.Raw)})
	}
}

// sender returns the email's From, or else the envelope's sender.
func sender(m sandbox.Message) *mail.Address {
	if from, err := mail.ParseAddress(m.Header.Get("From")); err == nil {
		return from
	}
	return &mail.Address{Address: m.From}
}

// html serves the HTML part as a document for a frame. Its policy allows styles only: no script, no
// form, no requests. The page around it may read its height.
func (i *inbox) html(w http.ResponseWriter, r *http.Request) {
	if mail, ok := i.find(w, r); ok {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; sandbox allow-same-origin")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, withoutLinks(mail.HTML))
	}
}

// withoutLinks leaves out each <link>: no policy keeps a browser from connecting to where a
// preconnect or a dns-prefetch leads.
func withoutLinks(text string) string {
	var b strings.Builder
	for tokens := html.NewTokenizer(strings.NewReader(text)); ; {
		if tokens.Next() == html.ErrorToken {
			return b.String()
		}
		raw := string(tokens.Raw())
		if name, _ := tokens.TagName(); string(name) != "link" {
			b.WriteString(raw)
		}
	}
}

func (i *inbox) find(w http.ResponseWriter, r *http.Request) (sandbox.Message, bool) {
	id, err := strconv.ParseUint(r.PathValue("id"), 10, 64)
	mail, ok := i.relay.Get(id)
	i.mu.Lock()
	hidden := id <= i.hidden
	i.mu.Unlock()
	if err != nil || !ok || hidden {
		fail(w, http.StatusNotFound, "not-found", "Not found", "This email is gone.")
		return sandbox.Message{}, false
	}
	return mail, true
}
