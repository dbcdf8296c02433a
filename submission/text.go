package submission

import (
	"bufio"
	"bytes"
	"io"
	"mime"
	"net/mail"
	"strings"
	"time"
	"unicode"

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

// read reads a text up to its end, a dot between two CRLF, and returns it with and without the lines that are put in front
// of it. It removes the dots that the client stuffed, and reads nothing after the end. A text that is refused is read to
// its end, too, unless the client is too slow or gone.
func (s *session) read() (whole, text []byte, refusal *reply) {
	now := s.server.Now()
	var made []string
	for _, to := range s.mail.Recipients() {
		made = append(made, s.server.Proofs.Make(to.ID, now, to.Address))
	}
	proofs := s.server.Proofs.Fields(made)
	whole = []byte(proofs + s.received(time.UnixMilli(now)))
	front := len(whole)
	s.conn.await(s.conn.until)
	begins, before := true, byte('\n') // of a line; the octet in front of it
	for {
		piece, err := s.conn.in.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull {
			return nil, nil, s.conn.last(err)
		}
		if begins && string(piece) == ".\r\n" {
			break
		}
		stuffed := begins && piece[0] == '.'
		begins = bytes.HasSuffix(piece, []byte("\r\n")) || before == '\r' && len(piece) == 1
		before = piece[len(piece)-1]
		if stuffed {
			piece = piece[1:]
		}
		switch {
		case refusal != nil:
			continue
		case len(whole)-front+len(piece) > s.server.MaxBytes:
			refusal = tooLarge
			continue
		case len(whole)+len(piece) > cap(whole):
			s.held += textStep
			if s.server.texts.Add(textStep) > s.server.times.Texts {
				refusal = &reply{452, "4.3.1", "too many emails are on their way; try again"}
				continue
			}
			whole = append(make([]byte, 0, len(whole)+textStep), whole...) // exactly what is reserved
		}
		whole = append(whole, piece...)
	}
	text = whole[front:]
	if refusal == nil {
		refusal = s.server.Senders.check(text)
	}
	for _, name := range s.server.Proofs.Names() { // providers may obey the first of two, or the last
		if _, n, _ := field(text, name); n > 0 {
			return whole[len(proofs):], text, refusal
		}
	}
	return whole, text, refusal
}

// textStep is by how much the memory of a text grows.
const textStep = 64 << 10

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
	if s.conn.key != "" {
		by += "A"
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	name := s.hello
	if len(name) > 255 || strings.Trim(name, letters+"0123456789-.") != "" || !strings.ContainsAny(name, letters) {
		name = "unknown" // as it is no name
	}
	return "Received: from " + name + " by " + s.server.Domain + "\r\n\twith " + by + " id " + s.id + "; " +
		now.UTC().Format(time.RFC1123Z) + "\r\n"
}

// check reports what is wrong with a text, and with its From.
func (all Senders) check(text []byte) *reply {
	value, count, whole := field(text, "from")
	switch {
	case !whole, !relay.Sendable(text, true):
		return malformed
	case count != 1 || len(value) > maxField: // net/mail is quadratic on long input
		return notOneFrom
	}
	parsed, err := fromParser.ParseList(value)
	if err != nil || len(parsed) != 1 {
		return notOneFrom
	}
	from, err := address.Parse(parsed[0].Address, address.Identity{})
	if err != nil || !all.allow(from) || eightBit([]byte(parsed[0].Address)) { // which readers may show as they are
		return &reply{550, "5.7.1", "the address in From is not allowed; MAILGATE_SUBMISSION_SENDERS lists those that are"}
	}
	return nil
}

const maxField = 1000

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
			if found && len(value) <= maxField { // longer is refused, and would take quadratic time
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
