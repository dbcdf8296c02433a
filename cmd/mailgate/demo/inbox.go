package demo

import (
	"context"
	"io"
	"net/http"
	"net/mail"
	"slices"
	"strconv"
	"time"

	"github.com/mailgate/mailgate/mailer/sandbox"
)

// pollTimeout is how long a page's request for new email is held open.
const pollTimeout = 15 * time.Second

// inbox shows what the relay received.
type inbox struct {
	relay *sandbox.Server
	ended context.Context // done when the program ends
}

// A line is one email in the list.
type line struct {
	ID         uint64   `json:"id"`
	To         []string `json:"to"`
	Subject    string   `json:"subject"`
	ReceivedMS int64    `json:"received_ms"`
}

// list answers with the emails, newest first. With after=<id> it waits for a newer one, for a
// while. A page that knows of a newer id has seen those of another process, or cleared ones,
// and is answered at once.
func (i inbox) list(w http.ResponseWriter, r *http.Request) {
	if after, err := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64); err == nil && after <= i.newest() {
		ctx, cancel := context.WithTimeout(i.ended, pollTimeout)
		defer cancel()
		_, _ = i.relay.WaitAfter(ctx, "", after) // after the timeout the list is as it was
	}
	lines := []line{}
	for _, mail := range slices.Backward(i.relay.List()) {
		lines = append(lines, line{mail.ID, mail.To, mail.Subject, mail.ReceivedMS})
	}
	writeJSON(w, http.StatusOK, struct {
		Mails []line `json:"mails"`
	}{lines})
}

// newest is the id of the newest mail, 0 if there is none.
func (i inbox) newest() uint64 {
	mails := i.relay.List()
	if len(mails) == 0 {
		return 0
	}
	return mails[len(mails)-1].ID
}

// clear empties the inbox.
func (i inbox) clear(w http.ResponseWriter, r *http.Request) {
	if _, ok := readForm(w, r); ok {
		i.relay.Clear()
		writeJSON(w, http.StatusOK, struct{}{})
	}
}

// mail is one email in full.
func (i inbox) mail(w http.ResponseWriter, r *http.Request) {
	if mail, ok := i.find(w, r); ok {
		writeJSON(w, http.StatusOK, struct {
			line
			From   string `json:"from"`
			Text   string `json:"text"`
			Source string `json:"source"`
		}{line{mail.ID, mail.To, mail.Subject, mail.ReceivedMS}, sender(mail), mail.Text, string(mail.Raw)})
	}
}

// sender is the From header, or else the envelope's sender.
func sender(m sandbox.Message) string {
	from, err := mail.ParseAddress(m.Header.Get("From"))
	switch {
	case err != nil:
		return m.From
	case from.Name == "":
		return from.Address
	}
	return from.Name + " <" + from.Address + ">"
}

// html is the HTML part as a document for a frame. It may be styled, and nothing else: no
// script, no form, nothing fetched. The page around it may read its height.
func (i inbox) html(w http.ResponseWriter, r *http.Request) {
	if mail, ok := i.find(w, r); ok {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; sandbox allow-same-origin")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, mail.HTML)
	}
}

func (i inbox) find(w http.ResponseWriter, r *http.Request) (sandbox.Message, bool) {
	id, err := strconv.ParseUint(r.PathValue("id"), 10, 64)
	mail, ok := i.relay.Get(id)
	if err != nil || !ok {
		fail(w, http.StatusNotFound, "this email does not exist, or was cleared")
		return sandbox.Message{}, false
	}
	return mail, true
}
