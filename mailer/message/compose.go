// Package message makes emails.
//
// Templates are files, one set for each name and locale, checked when they are loaded. A
// Composer fills one in for a Request and makes a Message: multipart/alternative, 7-bit
// ASCII, with its headers in a fixed order. Every field of a Request is checked before
// use, and every header, so that no field can add a header, a recipient or a second email.
// The time in an email is handed in.
package message

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mailgate/mailgate/mailer/address"
)

// Message is one finished email and its envelope.
type Message struct {
	ID       string // the Message-ID, with its angle brackets
	From, To address.Address
	// Bytes is the whole text, header and body: lines of at most 998 octets, each ended
	// by CRLF, of printable ASCII and tabs. Dots are not stuffed.
	Bytes []byte
}

// Composer makes the emails of one sender. It may be used from any number of goroutines.
type Composer struct {
	templates *Templates
	heads     map[string]head // by template
	layouts   sync.Map        // layoutKey to *layout, nil where none can be kept
}

// head is what the header blocks of a template's emails have in common.
type head struct {
	from   Sender
	domain string // the sender's, for Message-IDs
	lines  []byte // the header fields From, Reply-To and those of the template's own
}

// NewComposer makes a Composer and tries the templates with this sender's name, which may
// be too long for a subject.
func NewComposer(from Sender, templates *Templates) (*Composer, error) {
	if err := templates.try(from.Name); err != nil {
		return nil, err
	}
	c := &Composer{templates: templates, heads: map[string]head{}}
	for name, s := range templates.settings {
		h := head{from: from}
		if !s.from.Address.IsZero() {
			h.from = s.from
		}
		_, h.domain, _ = strings.Cut(h.from.Address.String(), "@")
		var err error
		if h.lines, err = appendHeader(nil, "From", h.from.header()); err != nil {
			return nil, err
		}
		h.lines = append(h.lines, s.lines...)
		c.heads[name] = h
	}
	return c, nil
}

func (c *Composer) headOf(r Request) head { return c.heads[cmp.Or(r.Template, DefaultTemplate)] }

// Digest returns a hash of the templates' texts.
func (c *Composer) Digest() [sha256.Size]byte { return c.templates.digest }

// Templates returns the names of the templates, sorted.
func (c *Composer) Templates() []string { return slices.Sorted(maps.Keys(c.templates.byName)) }

// Critical reports whether the emails of a template reach an address that bounced, once a day.
func (c *Composer) Critical(template string) bool {
	return c.templates.settings[cmp.Or(template, DefaultTemplate)].Critical
}

// SenderOf returns the name of who sends the emails of a template, or the domain of one without a name.
func (c *Composer) SenderOf(template string) string {
	h := c.headOf(Request{Template: template})
	return cmp.Or(h.from.Name, h.domain)
}

// HasNotMe reports whether the emails of a template have the link {{.NotMe}}.
func (c *Composer) HasNotMe(template string) bool {
	for _, t := range c.templates.byName[cmp.Or(template, DefaultTemplate)] {
		if t.notMe {
			return true
		}
	}
	return false
}

// Check returns what Compose would refuse in a request, one error for each field, so that a bad field
// costs the mailbox nothing. The recipient may be unknown.
func (c *Composer) Check(r Request) []*Error {
	t, wrong := r.check(c.templates)
	if len(wrong) > 0 && (t == nil || wrong[len(wrong)-1].Field == "data") {
		return wrong // there is nothing to fill in
	}
	if len(wrong) > 0 {
		r.Code = sampleCode
	}
	if r.To.IsZero() {
		r.To = sampleTo
	}
	if err := c.suits(t, r); err != nil {
		wrong = append(wrong, err)
	}
	return wrong
}

// Valid values to check the other fields of an email with.
const sampleCode = "000000"

var sampleTo, _ = address.Parse("recipient@example.com", address.Identity{})

// suits reports whether the template can be filled in for a request.
func (c *Composer) suits(t *template, r Request) *Error {
	if l := c.kept(t, r); l != nil && !strings.Contains(l.subject, markers.email) {
		return nil // codes were tried at their bounds at the start
	} else if l != nil {
		return r.checkSubject(r.values().in(l.subject))
	}
	_, err := c.fill(t, r, r.values())
	return err
}

// fill fills in the template, and names the field that is at fault where the result
// cannot be sent.
func (c *Composer) fill(t *template, r Request, v values) (content, *Error) {
	filled, err := t.render(fields{Code: v.code, Email: v.email, Sender: c.headOf(r).from.Name, Data: r.Data, NotMe: r.NotMe}, r.ExpiresInMS)
	if key := missingKey(err); key != "" {
		return content{}, &Error{"data", "lacks " + key + ", which the template needs"}
	}
	if err != nil {
		return content{}, &Error{r.variable(), "does not suit the template"} // the library's error may quote the field
	}
	return filled, r.checkSubject(filled.subject)
}

// Compose makes the email: multipart/alternative, text before HTML. If a field of the request
// is invalid, the error is an *Error.
func (c *Composer) Compose(r Request) (Message, error) {
	t, wrong := r.check(c.templates)
	if len(wrong) > 0 {
		return Message{}, wrong[0]
	}
	l := c.kept(t, r)
	if l == nil {
		var err error
		if l, err = c.newLayout(t, r); err != nil {
			return Message{}, err
		}
	}
	v := r.values()
	subject := v.in(l.subject)
	if err := r.checkSubject(subject); err != nil {
		return Message{}, err
	}
	if !isPlain(subject) {
		subject = encodedWords(subject)
	}
	own := c.headOf(r)
	id := "<" + r.ID + "@" + own.domain + ">"
	head := make([]byte, 0, l.size+len(own.lines)+len(r.Fields)+1024)
	head = append(head, r.Fields...)
	head = time.UnixMilli(r.NowMS).UTC().AppendFormat(head, "Date: "+time.RFC1123Z+"\r\n")
	head = append(head, own.lines...)
	var err error
	for _, header := range [][2]string{{"To", "<" + r.To.String() + ">"}, {"Subject", subject}, {"Message-ID", id}} {
		if head, err = appendHeader(head, header[0], header[1]); err != nil {
			return Message{}, fmt.Errorf("composing the email: %w", err)
		}
	}
	out := bytes.NewBuffer(head)
	v.boundary = rand.Text()
	l.write(out, v)
	return Message{ID: id, From: own.from.Address, To: r.To, Bytes: out.Bytes()}, nil
}
