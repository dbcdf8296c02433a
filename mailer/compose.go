package mailer

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/textproto"
	"strings"
	"time"

	"github.com/jordan-wright/email"
)

// The random octets of a mail: its Message-ID's, and its boundary's, which is as
// long as the one the library writes and takes its place.
const (
	idRandom       = 8
	boundaryRandom = 30
)

// Composer makes mails. Any number of goroutines may use one.
type Composer struct {
	templates *Templates
	from      Sender
	header    string // the From header's value
	domain    string // the sender's, for Message-IDs
	random    io.Reader
}

// NewComposer makes a Composer, and tries the templates for this sender: a long
// name may not suit them all. Random feeds Message-IDs and boundaries and must be
// safe for use by many goroutines, as crypto/rand.Reader is.
func NewComposer(from Sender, templates *Templates, random io.Reader) (*Composer, error) {
	if from.Address.IsZero() || templates == nil || random == nil {
		return nil, errors.New("mailer: a composer needs a sender, templates and a source of randomness")
	}
	if err := templates.tryFor(from.Name); err != nil {
		return nil, err
	}
	wire := from.Address.String()
	return &Composer{
		templates: templates,
		from:      from,
		header:    from.header(),
		domain:    wire[strings.IndexByte(wire, '@')+1:],
		random:    random,
	}, nil
}

// Digest is the same for composers whose templates are the same texts.
func (c *Composer) Digest() [sha256.Size]byte { return c.templates.digest }

// Check tells whether Compose would take the request, without composing: the
// way to refuse a bad field before it costs the mailbox anything. The template
// is filled in only if it is one that not every request suits. The error is a
// *ComposeError.
func (c *Composer) Check(r Request) error {
	template, bad := r.check(c.templates)
	if bad == nil && template.choosy {
		_, bad = c.fill(template, r)
	}
	if bad != nil {
		return bad
	}
	return nil
}

// fill fills in the template, and says which field of the request is at fault
// if nothing that can be sent comes of it.
func (c *Composer) fill(template *mailTemplate, r Request) (rendered, *ComposeError) {
	fields := templateFields{Code: r.Code, Email: shown(r.To), Sender: c.from.Name, Data: r.Data}
	parts, err := template.render(fields, r.ExpiresInMS)
	if err != nil {
		// The library's error may quote what it was filling in.
		return rendered{}, badField(template.madeBy, "does not suit the template")
	}
	if problem := subjectProblem(parts.subject); problem != "" {
		return rendered{}, badField(template.subjectBy, "makes a subject that "+problem)
	}
	return parts, nil
}

// Compose makes the mail: multipart/alternative, text before HTML. It checks
// the request first and the finished octets last, so that no field can add a
// header, a recipient or a second mail. The error is a *ComposeError.
func (c *Composer) Compose(r Request) (Message, error) {
	template, bad := r.check(c.templates)
	if bad != nil {
		return Message{}, bad
	}
	parts, bad := c.fill(template, r)
	if bad != nil {
		return Message{}, bad
	}
	var random [idRandom + boundaryRandom]byte
	if _, err := io.ReadFull(c.random, random[:]); err != nil {
		return Message{}, notComposed("the source of randomness failed", err)
	}
	id := "<" + r.ID + "." + hex.EncodeToString(random[:idRandom]) + "@" + c.domain + ">"
	composed, err := alternatives(parts, id)
	if err != nil {
		return Message{}, notComposed("the mail could not be put together", err)
	}
	text, err := finish(composed, c.block(r, parts.subject, id), hex.EncodeToString(random[idRandom:]))
	if err != nil {
		return Message{}, notComposed("the finished mail failed its check", err)
	}
	return Message{ID: id, From: c.from.Address.String(), To: r.To.String(), Bytes: text}, nil
}

// alternatives has the library put the two parts together. Message-Id and Date
// are set only to keep it from making them up, of this host's name and clock;
// its whole header block is replaced by ours. It would split a sender's name at
// a comma and write what it is given in random order.
func alternatives(parts rendered, id string) ([]byte, error) {
	mail := email.Email{
		Text:    parts.text,
		HTML:    parts.html,
		Headers: textproto.MIMEHeader{"Message-Id": {id}, "Date": {"-"}},
	}
	return mail.Bytes()
}

// block is the header block, but for Content-Type.
func (c *Composer) block(r Request, subject, id string) []header {
	return []header{
		{"Date", time.UnixMilli(r.NowMS).UTC().Format(time.RFC1123Z)},
		{"From", c.header},
		{"To", "<" + r.To.String() + ">"},
		{"Subject", headerText(subject)},
		{"Message-ID", id},
		{"Auto-Submitted", "auto-generated"},
		{"X-Auto-Response-Suppress", "All"},
		{"MIME-Version", "1.0"},
	}
}
