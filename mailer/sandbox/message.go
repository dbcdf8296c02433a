package sandbox

import (
	"bytes"
	"cmp"
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
	Files      []File // the other parts, such as attachments
	// Header is the email's header, undecoded.
	Header mail.Header
	// Raw is the email as it came, dot-stuffing undone. It is shared between
	// callers and must not be changed.
	Raw []byte
}

// File is a part of an email that is not its text, such as an attachment.
type File struct {
	Name    string // empty if the email has none for it
	Type    string
	Content []byte // decoded
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

// readPart takes the text and the files out of one part, and of the parts in it.
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
	content := decodeBody(header("Content-Transfer-Encoding"), body)
	disposition, named, _ := mime.ParseMediaType(header("Content-Disposition"))
	inline := disposition != "attachment"
	switch {
	case inline && kind == "text/plain" && m.Text == "":
		m.Text = lines(content)
	case inline && kind == "text/html" && m.HTML == "":
		m.HTML = lines(content)
	default:
		m.Files = append(m.Files, File{decodeHeader(cmp.Or(named["filename"], params["name"])), kind, content})
	}
}

// decodeBody undoes the transfer encoding. What cannot be decoded is left out from there on.
func decodeBody(encoding string, body io.Reader) []byte {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	content, _ := io.ReadAll(body)
	return content
}

func lines(text []byte) string { return strings.ReplaceAll(string(text), "\r\n", "\n") }
