package message

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"mime/quotedprintable"
	"net/textproto"
	"regexp"
	"strings"

	"github.com/jordan-wright/email"
)

// layout is a finished email without the headers that differ from one to the next. If only the code and the address
// differ besides, it has markers in their place and is kept: filling in and encoding a template is a tenth of a send.
type layout struct {
	subject string
	body    []piece // and the last headers before it
	size    int     // in octets, about
}

// piece is text as it goes out, with a boundary between two of its parts, and the line after it, not
// encoded yet, if it has a marker.
type piece struct {
	text [][]byte
	line string
}

// values are what replaces the markers, and the boundary.
type values struct{ code, email, boundary string }

// markers are not changed by the encodings of an email. They are random, so that no request and
// no template has one of them.
var markers = values{code: rand.Text()[:maxCode], email: rand.Text() + "._-@marker.example"}

func (v values) in(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, markers.code, v.code), markers.email, v.email)
}

func (r Request) values() values { return values{code: r.Code, email: displayed(r.To)} }

// layoutKey is what a kept layout depends on.
type layoutKey struct {
	template *template
	valid    duration
}

// canKeep reports whether the email of a request differs from others in code and address alone, and a template
// changes neither where it puts them. html/template keeps some words out of styles, since they could run as code.
// The shortest is "expression", so a code with fewer letters is safe.
func (r Request) canKeep(t *template) bool {
	return t.plain && len(r.Data) == 0 && isWord(r.values().email, ".-_@") && letters(r.Code) < len("expression")
}

func letters(code string) (n int) {
	for _, c := range code {
		if c > '9' {
			n++
		}
	}
	return n
}

// kept returns the layout that is kept for a request, or nil.
func (c *Composer) kept(t *template, r Request) *layout {
	if !r.canKeep(t) {
		return nil
	}
	found, _ := c.layouts.Load(layoutKey{t, durationIn(r.ExpiresInMS)})
	l, _ := found.(*layout)
	return l
}

// newLayout makes the layout of a request. One with markers is kept if it gives the same email.
func (c *Composer) newLayout(t *template, r Request) (*layout, error) {
	l, err := c.layOut(t, r, r.values())
	key := layoutKey{t, durationIn(r.ExpiresInMS)}
	if _, known := c.layouts.Load(key); err != nil || known || !r.canKeep(t) {
		return l, err
	}
	marked, err := c.layOut(t, r, markers)
	if err != nil || !marked.gives(l, r.values()) {
		marked = nil
	}
	c.layouts.Store(key, marked)
	return l, nil
}

var (
	// boundary is replaced in each email: with one for all, the reader of an email could choose a
	// value that ends a part of another.
	boundary      = rand.Text()
	inContentType = regexp.MustCompile(`boundary=(\w+)`)
)

// layOut has the library put the two parts together. Its header block is left out, since it has
// headers in random order and splits a sender's name at a comma.
func (c *Composer) layOut(t *template, r Request, v values) (*layout, error) {
	filled, wrong := c.fill(t, r, v)
	if wrong != nil {
		return nil, wrong
	}
	mail := email.Email{
		Text: filled.text,
		HTML: filled.html,
		// Set only to keep the library from making them of this host's name and clock.
		Headers: textproto.MIMEHeader{"Message-Id": {"-"}, "Date": {"-"}},
	}
	composed, err := mail.Bytes()
	if err != nil {
		return nil, fmt.Errorf("composing the email: %w", err)
	}
	head, body, _ := bytes.Cut(composed, []byte("\r\n\r\n"))
	theirs := inContentType.FindSubmatch(head)
	if theirs == nil {
		return nil, errors.New("composing the email: the library made no multipart email")
	}
	body = append([]byte(lastLines), bytes.ReplaceAll(body, theirs[1], []byte(boundary))...)
	return &layout{subject: filled.subject, body: cut(body), size: len(body)}, nil
}

// lastLines are equal in the header block of every email.
var lastLines = "Auto-Submitted: auto-generated\r\nX-Auto-Response-Suppress: All\r\nMIME-Version: 1.0\r\n" +
	"Content-Type: multipart/alternative;\r\n boundary=" + boundary + "\r\n\r\n"

// cut takes the lines with markers out of an encoded text, and decodes them. Lines that end in a
// soft line break are one with the next.
func cut(text []byte) (pieces []piece) {
	start := 0 // of what is in no piece yet
	for at := 0; at < len(text); {
		end := at
		for end == at || bytes.HasSuffix(text[:end], []byte("=\r\n")) {
			end += bytes.Index(text[end:], []byte("\r\n")) + len("\r\n")
		}
		line := bytes.ReplaceAll(text[at:end], []byte("=\r\n"), nil)
		if bytes.Contains(line, []byte(markers.code)) || bytes.Contains(line, []byte(markers.email)) {
			decoded, _ := io.ReadAll(quotedprintable.NewReader(bytes.NewReader(line))) // what cannot be decoded gives another email
			pieces = append(pieces, newPiece(text[start:at], strings.TrimSuffix(string(decoded), "\r\n")))
			start = end
		}
		at = end
	}
	return append(pieces, newPiece(text[start:], ""))
}

func newPiece(text []byte, line string) piece {
	return piece{bytes.Split(text, []byte(boundary)), line}
}

// write writes the body with these values.
func (l *layout) write(out *bytes.Buffer, v values) {
	for _, p := range l.body {
		for i, text := range p.text {
			if i > 0 {
				out.WriteString(v.boundary)
			}
			out.Write(text)
		}
		if p.line != "" {
			encoder := quotedprintable.NewWriter(out)
			_, _ = io.WriteString(encoder, v.in(p.line)) // a write to memory does not fail
			_ = encoder.Close()
			out.WriteString("\r\n")
		}
	}
}

// gives reports whether the layout makes the same email as another.
func (l *layout) gives(other *layout, v values) bool {
	var one, two bytes.Buffer
	l.write(&one, v)
	other.write(&two, v)
	return v.in(l.subject) == other.subject && bytes.Equal(one.Bytes(), two.Bytes())
}
