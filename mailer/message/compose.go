// Package message makes mails.
//
// Templates are files, one set for each name and locale, checked when they are loaded. A
// Composer fills one in for a Request and makes a Message: multipart/alternative, seven
// bits, one header block in a fixed order. Every field of a Request is checked before
// use and the finished octets once more, so that no field can add a header, a recipient
// or a second mail. The time in a mail is handed in.
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
	// What is equal in the header block of every mail: From, and what follows Message-ID.
	fromLine, lastLines []byte
}

// NewComposer makes a Composer and tries the templates with this sender's name, which may
// be too long for a subject.
func NewComposer(from Sender, templates *Templates) (*Composer, error) {
	if from.Address.IsZero() || templates == nil {
		return nil, errors.New("a composer needs a sender and templates")
	}
	if err := templates.try(from.Name); err != nil {
		return nil, err
	}
	_, domain, _ := strings.Cut(from.Address.String(), "@")
	c := &Composer{templates: templates, from: from, domain: domain}
	var err error
	if c.fromLine, err = appendHeader(nil, "From", from.header()); err != nil {
		return nil, err
	}
	c.lastLines = []byte("Auto-Submitted: auto-generated\r\nX-Auto-Response-Suppress: All\r\nMIME-Version: 1.0\r\n")
	return c, nil
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
		return content{}, badField("data", "lacks "+key+", which the template needs")
	}
	if err != nil {
		return content{}, badField(t.madeBy, "does not suit the template") // the library's error may quote the field
	}
	if problem := subjectProblem(filled.subject); problem != "" {
		return content{}, badField(t.subjectBy, "makes a subject that "+problem)
	}
	return filled, nil
}

// Compose makes the mail: multipart/alternative, text before HTML. The error is an *Error.
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
	composed, err := alternatives(filled, id)
	if err != nil {
		return Message{}, notComposed("the mail could not be put together", err)
	}
	text, err := c.finish(composed, r, filled.subject, id)
	if err != nil {
		return Message{}, notComposed("the finished mail failed its check", err)
	}
	return Message{ID: id, From: c.from.Address, To: r.To, Bytes: text}, nil
}

// alternatives has the library put the two parts together. Message-Id and Date are set
// only to keep it from making them of this host's name and clock.
func alternatives(filled content, id string) ([]byte, error) {
	mail := email.Email{
		Text:    filled.text,
		HTML:    filled.html,
		Headers: textproto.MIMEHeader{"Message-Id": {id}, "Date": {"-"}},
	}
	return mail.Bytes()
}

// finish puts our header block in the place of the library's, which has headers in random
// order and splits a sender's name at a comma, and checks every octet of the result.
func (c *Composer) finish(composed []byte, r Request, subject, id string) ([]byte, error) {
	head, body, ok := bytes.Cut(composed, []byte("\r\n\r\n"))
	_, boundary, found := bytes.Cut(head, []byte("\r\n boundary="))
	if !ok || !found {
		return nil, errors.New("the library made no multipart mail")
	}
	boundary, _, _ = bytes.Cut(boundary, []byte("\r\n"))
	out := make([]byte, 0, len(composed)+512)
	out = fmt.Appendf(out, "Date: %s\r\n%sTo: <%s>\r\n", time.UnixMilli(r.NowMS).UTC().Format(time.RFC1123Z), c.fromLine, r.To.String())
	out, err := appendHeader(out, "Subject", headerText(subject))
	if err != nil {
		return nil, err
	}
	out = fmt.Appendf(out, "Message-ID: %s\r\n%sContent-Type: multipart/alternative;\r\n boundary=%s\r\n\r\n%s", id, c.lastLines, boundary, body)
	return out, checkOctets(out)
}

// maxLine is the limit of RFC 5321 and 5322 for a line of mail, without its CRLF.
const maxLine = 998

// checkOctets checks what Message.Bytes promises.
func checkOctets(text []byte) error {
	for line := 1; len(text) > 0; line++ {
		end := bytes.IndexByte(text, '\n')
		if end < 1 || text[end-1] != '\r' {
			return fmt.Errorf("line %d does not end in CRLF", line)
		}
		if end-1 > maxLine {
			return fmt.Errorf("line %d is too long", line)
		}
		for _, c := range text[:end-1] {
			if (c < ' ' || c > '~') && c != '\t' {
				return fmt.Errorf("line %d contains an octet that may not be there", line)
			}
		}
		text = text[end+1:]
	}
	return nil
}
