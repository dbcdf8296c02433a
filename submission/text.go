package submission

import (
	"bytes"
	"io"
	"mime"
	"net/mail"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/emersion/go-smtp"

	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/relay"
)

// Senders are the addresses that email may be from: alice@acme.example, or all of @acme.example. They are in
// lower case.
type Senders []string

func (all Senders) String() string { return strings.Join(all, ",") }

// allow reports whether email may be from an address.
func (all Senders) allow(from address.Address) bool {
	text := strings.ToLower(from.String())
	for _, one := range all {
		if text == one || one[0] == '@' && strings.HasSuffix(text, one) {
			return true
		}
	}
	return false
}

// read reads a text, and returns it with and without the lines that are put in front of it.
func (s *session) read(r io.Reader) (whole, text []byte, refusal *smtp.SMTPError, cause error) {
	_, chunks := r.(*io.PipeReader)
	s.conn.chunks.Store(chunks)
	defer func() { s.conn.chunks.Store(false); s.conn.dots.found = false }()
	now := s.server.Now()
	proofs := s.proofs(now)
	whole = []byte(proofs + s.received(time.UnixMilli(now)))
	front := len(whole)
	for {
		if len(whole) == cap(whole) {
			s.held += textStep
			if s.server.texts.Add(textStep) > s.server.times.Texts {
				return nil, nil, tooManyTexts, nil
			}
			whole = append(make([]byte, 0, len(whole)+textStep), whole...) // exactly what is reserved
		}
		n, err := r.Read(whole[len(whole):cap(whole)])
		whole = whole[:len(whole)+n]
		text = whole[front:]
		switch {
		case len(text) > s.server.MaxBytes, err == smtp.ErrDataTooLarge:
			return nil, nil, tooLarge, nil
		case err == io.EOF && chunks && announced(s.client) != int64(len(text)):
			return nil, nil, tooSlow, io.ErrUnexpectedEOF
		case err == io.EOF && !chunks && s.conn.dots.found, err == smtp.ErrTooLongLine:
			return nil, nil, malformed, nil
		case err == io.EOF:
			if s.hasProofs(text) {
				whole = whole[len(proofs):]
			}
			return whole, text, s.server.Senders.check(text), nil
		case err != nil:
			return nil, nil, tooSlow, err
		}
	}
}

// proofs returns the fields that prove to whom the email is sent.
func (s *session) proofs(now int64) string {
	var all []string
	for _, to := range s.to {
		if to.refused == nil {
			all = append(all, s.server.Proofs.Make(to.result.ID, now, to.Address))
		}
	}
	return s.server.Proofs.Fields(all)
}

// hasProofs reports whether a text has one of the fields, as providers may obey the first of two or the last.
func (s *session) hasProofs(text []byte) bool {
	return slices.ContainsFunc(s.server.Proofs.Names(), func(name string) bool {
		_, n, _ := field(text, name)
		return n > 0
	})
}

// announced returns how many octets of chunks the client has announced. The library ends a text also where
// the connection has ended in its last chunk, and has the number in this field alone.
func announced(c *smtp.Conn) int64 {
	return reflect.ValueOf(c).Elem().FieldByName("bytesReceived").Int()
}

// textStep is by how much the memory of a text grows.
const textStep = 64 << 10

// freeText gives back the memory of a text.
func (s *session) freeText() {
	s.server.texts.Add(-s.held)
	s.held = 0
}

func eightBit(text []byte) bool {
	return bytes.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII })
}

// received is the line that RFC 5321, 4.4 asks for. It names the client as it names itself, and not its
// address.
func (s *session) received(now time.Time) string {
	by := "ESMTP"
	if s.encrypted {
		by += "S"
	}
	if s.key != "" {
		by += "A"
	}
	return "Received: from " + name(s.client.Hostname()) + " by " + s.server.Domain + "\r\n\twith " + by + " id " + s.id + "; " +
		now.UTC().Format(time.RFC1123Z) + "\r\n"
}

// name returns a client's name if it is one.
func name(given string) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	if len(given) > 255 || strings.Trim(given, letters+"0123456789-.") != "" || !strings.ContainsAny(given, letters) {
		return "unknown"
	}
	return given
}

// check reports what is wrong with a text, and with its From.
func (all Senders) check(text []byte) *smtp.SMTPError {
	value, count, whole := field(text, "from")
	switch {
	case !whole, !relay.Sendable(text, true):
		return malformed
	case count != 1 || len(value) > maxFrom: // net/mail is quadratic on long input
		return notOneFrom
	}
	parsed, err := fromParser.ParseList(value)
	if err != nil || len(parsed) != 1 {
		return notOneFrom
	}
	from, err := address.Parse(parsed[0].Address, address.Identity{})
	if err != nil || !all.allow(from) {
		return fromRefused
	}
	return nil
}

const maxFrom = 1000

// fromParser reads names in every charset, as it need not show them.
var fromParser = mail.AddressParser{WordDecoder: &mime.WordDecoder{
	CharsetReader: func(_ string, input io.Reader) (io.Reader, error) { return input, nil },
}}

// field finds a field in the header of a text, and how often it is there. A header is not whole if it has a
// line that programs read in different ways.
func field(text []byte, wanted string) (value string, count int, whole bool) {
	begun, found := false, false
	for line := range bytes.SplitSeq(text, []byte("\r\n")) {
		if len(line) == 0 {
			return value, count, true
		}
		if begun && (line[0] == ' ' || line[0] == '\t') && len(bytes.Trim(line, " \t")) > 0 { // some readers end a header at blanks
			if found && len(value) <= maxFrom { // longer is refused, and would take quadratic time
				value += string(line)
			}
			continue
		}
		name, rest, ok := strings.Cut(string(line), ":")
		if !ok || name == "" || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' }) {
			return "", 0, false
		}
		begun = true
		if found = strings.EqualFold(name, wanted); found {
			value = rest
			count++
		}
	}
	return value, count, true
}
