// Package message makes mails.
//
// Templates are files, one set for each name and locale, checked when they are loaded. A
// Composer fills one in for a Request and makes a Message: multipart/alternative, seven
// bits, one header block in a fixed order. Every field of a Request is checked before
// use, and every header, so that no field can add a header, a recipient or a second mail.
// The time in a mail is handed in.
package message

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/textproto"
	"strings"
	"time"

	"github.com/jordan-wright/email"

	"github.com/mailgate/mailgate/mailer/address"
)

// Message is one finished mail and its envelope.
type Message struct {
	ID       string // the Message-ID, with its angle brackets
	From, To address.Address
	// Bytes is the whole text, header and body: lines of at most 998 octets, each ended
	// by CRLF, of printable ASCII and tabs. Dots are not stuffed.
	Bytes []byte
}

// Composer makes the mails of one sender. It may be used from any number of goroutines.
type Composer struct {
	templates *Templates
	from      Sender
	domain    string // the sender's, for Message-IDs
	fromLine  []byte // the header From
}

// NewComposer makes a Composer and tries the templates with this sender's name, which may
// be too long for a subject.
func NewComposer(from Sender, templates *Templates) (*Composer, error) {
	if err := templates.try(from.Name); err != nil {
		return nil, err
	}
	_, domain, _ := strings.Cut(from.Address.String(), "@")
	fromLine, err := appendHeader(nil, "From", from.header())
	return &Composer{templates: templates, from: from, domain: domain, fromLine: fromLine}, err
}

// Digest is equal for composers whose templates are the same texts.
func (c *Composer) Digest() [sha256.Size]byte { return c.templates.digest }

// Check reports whether Compose would take the request, so that a bad field costs the
// mailbox nothing. It fills in the template only where a request may not suit it. The
// error is an *Error.
func (c *Composer) Check(r Request) error {
	t, err := r.check(c.templates)
	if err == nil && t.choosy {
		_, err = c.fill(t, r)
	}
	return err
}

// fill fills in the template, and names the field that is at fault where the result
// cannot be sent.
func (c *Composer) fill(t *template, r Request) (content, error) {
	filled, err := t.render(fields{Code: r.Code, Email: shown(r.To), Sender: c.from.Name, Data: r.Data}, r.ExpiresInMS)
	if key := missingKey(err); key != "" {
		return content{}, &Error{"data", "lacks " + key + ", which the template needs"}
	}
	if err != nil {
		return content{}, &Error{t.madeBy, "does not suit the template"} // the library's error may quote the field
	}
	if problem := subjectProblem(filled.subject); problem != "" {
		return content{}, &Error{t.subjectBy, "makes a subject that " + problem}
	}
	return filled, nil
}

// Compose makes the mail: multipart/alternative, text before HTML. If a field of the request
// is invalid, the error is an *Error.
func (c *Composer) Compose(r Request) (Message, error) {
	t, err := r.check(c.templates)
	if err != nil {
		return Message{}, err
	}
	filled, err := c.fill(t, r)
	if err != nil {
		return Message{}, err
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	id := "<" + r.ID + "." + hex.EncodeToString(random[:]) + "@" + c.domain + ">"
	text, err := c.assemble(r, filled, id)
	if err != nil {
		return Message{}, fmt.Errorf("composing the email: %w", err)
	}
	return Message{ID: id, From: c.from.Address, To: r.To, Bytes: text}, nil
}

// assemble has the library put the two parts together, with our header block instead of
// its own, which has headers in random order and splits a sender's name at a comma.
func (c *Composer) assemble(r Request, filled content, id string) ([]byte, error) {
	mail := email.Email{
		Text: filled.text,
		HTML: filled.html,
		// Set only to keep the library from making them of this host's name and clock.
		Headers: textproto.MIMEHeader{"Message-Id": {id}, "Date": {"-"}},
	}
	composed, err := mail.Bytes()
	if err != nil {
		return nil, err
	}
	head, body, _ := bytes.Cut(composed, []byte("\r\n\r\n"))
	_, boundary, found := bytes.Cut(head, []byte("\r\n boundary="))
	if !found {
		return nil, errors.New("the library made no multipart email")
	}
	boundary, _, _ = bytes.Cut(boundary, []byte("\r\n"))
	out := make([]byte, 0, len(composed)+512)
	out = fmt.Appendf(out, "Date: %s\r\n%s", time.UnixMilli(r.NowMS).UTC().Format(time.RFC1123Z), c.fromLine)
	for _, header := range [][2]string{{"To", "<" + r.To.String() + ">"}, {"Subject", headerText(filled.subject)}, {"Message-ID", id}} {
		if out, err = appendHeader(out, header[0], header[1]); err != nil {
			return nil, err
		}
	}
	return fmt.Appendf(out, "%s boundary=%s\r\n\r\n%s", lastLines, boundary, body), nil
}

// lastLines are equal in the header block of every mail.
const lastLines = "Auto-Submitted: auto-generated\r\nX-Auto-Response-Suppress: All\r\nMIME-Version: 1.0\r\n" +
	"Content-Type: multipart/alternative;\r\n"
