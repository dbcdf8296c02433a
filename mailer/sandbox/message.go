package sandbox

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"strings"
)

// Message is one email as its reader would see it, and as it came over the wire.
type Message struct {
	ID         uint64
	From       string   // envelope sender
	To         []string // envelope recipients
	ReceivedMS int64
	Subject    string // decoded
	Text       string // the first text/plain part, decoded
	HTML       string // the first text/html part, decoded
	// Header is the email's header, undecoded.
	Header mail.Header
	// Raw is the email as it came, dot-stuffing undone. It is shared between
	// callers and must not be changed.
	Raw []byte
}

// mostParts bounds how deep and wide a multipart email is followed.
const mostParts = 32

// read makes the reader's view. An email that is not well formed is shown as
// far as it can be read; nothing is refused at this point.
func read(e envelope) Message {
	m := Message{ID: e.id, From: e.from, To: e.to, ReceivedMS: e.receivedMS, Raw: e.raw}
	parsed, err := mail.ReadMessage(bytes.NewReader(e.raw))
	if err != nil {
		m.Text = string(e.raw)
		return m
	}
	m.Header = parsed.Header
	m.Subject = decodeHeader(parsed.Header.Get("Subject"))
	budget := mostParts
	m.readPart(parsed.Header.Get, parsed.Body, &budget)
	return m
}

func decodeHeader(value string) string {
	decoded, err := new(mime.WordDecoder).DecodeHeader(value)
	if err != nil {
		return value
	}
	return decoded
}

// readPart takes the text out of one part, and of the parts in it.
func (m *Message) readPart(header func(string) string, body io.Reader, budget *int) {
	if *budget--; *budget < 0 {
		return
	}
	kind, params, err := mime.ParseMediaType(header("Content-Type"))
	if err != nil {
		kind = "text/plain"
	}
	if strings.HasPrefix(kind, "multipart/") {
		parts := multipart.NewReader(body, params["boundary"])
		for {
			part, err := parts.NextRawPart()
			if err != nil {
				return
			}
			m.readPart(part.Header.Get, part, budget)
		}
	}
	switch {
	case kind == "text/plain" && m.Text == "":
		m.Text = decodeBody(header("Content-Transfer-Encoding"), body)
	case kind == "text/html" && m.HTML == "":
		m.HTML = decodeBody(header("Content-Transfer-Encoding"), body)
	}
}

// decodeBody undoes the transfer encoding and turns CRLF into newlines. What
// cannot be decoded is shown up to there.
func decodeBody(encoding string, body io.Reader) string {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	text, _ := io.ReadAll(body)
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}
