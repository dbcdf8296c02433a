package demo

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/mail"
	"net/textproto"
	"path"
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

// inbox shows the emails that the relay received. What is deleted is hidden, so that it can be undone.
type inbox struct {
	relay *sandbox.Server
	ended context.Context // over when the program ends

	mu             sync.Mutex
	opened, hidden map[uint64]bool
	deleted        []uint64 // what Undo returns
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
		if !i.hidden[mail.ID] {
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

// remove hides the emails with these ids.
func (i *inbox) remove(w http.ResponseWriter, r *http.Request) {
	var body struct {
		IDs []uint64 `json:"ids"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&body); err != nil {
		fail(w, http.StatusBadRequest, "malformed", "Malformed request", "Expected the ids of emails.")
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, id := range body.IDs {
		i.hidden[id] = true
	}
	i.deleted = body.IDs
	writeJSON(w, struct{}{})
}

// restore undoes the last remove.
func (i *inbox) restore(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, id := range i.deleted {
		delete(i.hidden, id)
	}
	writeJSON(w, struct{}{})
}

// mail serves one email and marks it as read.
func (i *inbox) mail(w http.ResponseWriter, r *http.Request) {
	if mail, ok := i.find(w, r); ok {
		i.mu.Lock()
		i.opened[mail.ID] = true
		i.mu.Unlock()
		from := sender(mail)
		files := []file{}
		for _, f := range mail.Files {
			files = append(files, file{cmp.Or(f.Name, f.Type), len(f.Content)})
		}
		writeJSON(w, struct {
			line
			From     string      `json:"from"`
			FromName string      `json:"from_name"`
			HTML     bool        `json:"html"` // whether there is an HTML part
			Text     string      `json:"text"`
			Files    []file      `json:"files"`
			Header   [][2]string `json:"header"`
			Source   string      `json:"source"`
		}{lineOf(mail, false), from.Address, from.Name, mail.HTML != "", mail.Text, files, fields(mail), string(mail.Raw)})
	}
}

// A file is an attachment, or another part that is not the text.
type file struct {
	Name string `json:"name"`
	Size int    `json:"size"`
}

// fields are the names and values of the email's header, decoded, in their order.
func fields(m sandbox.Message) [][2]string {
	fields := [][2]string{}
	for r := textproto.NewReader(bufio.NewReader(bytes.NewReader(m.Raw))); m.Header != nil; {
		field, err := r.ReadContinuedLine()
		if err != nil || field == "" {
			break
		}
		name, value, _ := strings.Cut(field, ":")
		value = strings.TrimSpace(value)
		if decoded, err := new(mime.WordDecoder).DecodeHeader(value); err == nil {
			value = decoded
		}
		fields = append(fields, [2]string{name, value})
	}
	return fields
}

// raw serves the email as it came, for saving.
func (i *inbox) raw(w http.ResponseWriter, r *http.Request) {
	if mail, ok := i.find(w, r); ok {
		save(w, fmt.Sprintf("email-%d.eml", mail.ID), mail.Raw)
	}
}

// file serves one of the email's files, for saving.
func (i *inbox) file(w http.ResponseWriter, r *http.Request) {
	mail, ok := i.find(w, r)
	if !ok {
		return
	}
	n, err := strconv.Atoi(r.PathValue("n"))
	if err != nil || n < 0 || n >= len(mail.Files) {
		missing(w, r)
		return
	}
	save(w, path.Base(cmp.Or(mail.Files[n].Name, "file")), mail.Files[n].Content)
}

// save serves what a browser saves and does not show.
func save(w http.ResponseWriter, name string, content []byte) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	_, _ = w.Write(content)
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
	hidden := i.hidden[id]
	i.mu.Unlock()
	if err != nil || !ok || hidden {
		fail(w, http.StatusNotFound, "not-found", "Not found", "This email is gone.")
		return sandbox.Message{}, false
	}
	return mail, true
}
