package message

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mailgate/mailgate/mailer/address"
)

// The bounds of a subject and of a display name, in characters.
const (
	maxSubject    = 200
	maxSenderName = 64
)

// Sender is who emails come from.
type Sender struct {
	Name    string          // the display name; may be empty
	Address address.Address // in the From header and in the envelope
}

// ParseSender reads `Acme <no-reply@acme.example>` or a bare address. A name with a comma
// or another mark must be in double quotes. The address obeys the rules of a recipient's.
// Errors do not repeat the text.
func ParseSender(text string) (Sender, error) {
	// net/mail is quadratic on long input, so the length comes first.
	if len(text) > 254+4*maxSenderName+4 {
		return Sender{}, errors.New("the sender is too long")
	}
	if strings.Contains(text, "{{") {
		return Sender{}, errors.New("the sender cannot have {{, as it is not filled in")
	}
	parsed, err := mail.ParseAddress(text)
	if err != nil { // whose text quotes what it read
		return Sender{}, errors.New(`the sender must read like: Acme <no-reply@acme.example>, with the name in double quotes if it has marks such as a comma`)
	}
	name := strings.TrimSpace(parsed.Name)
	if problem := plainTextProblem(name, maxSenderName); problem != "" {
		return Sender{}, errors.New("the sender's name " + problem)
	}
	from, err := address.Parse(parsed.Address, address.Identity{})
	if err != nil {
		return Sender{}, fmt.Errorf("the sender's address: %w", err)
	}
	return Sender{Name: name, Address: from}, nil
}

// header returns the value of From. A name with marks is quoted, so that none of them is taken for
// structure. Only what is not ASCII or looks like an encoded word is encoded, since spam filters
// count needless encoding against an email.
func (s Sender) header() string {
	bare := "<" + s.Address.String() + ">"
	switch {
	case s.Name == "":
		return bare
	case isWord(s.Name, " "):
		return s.Name + " " + bare
	case isPlain(s.Name):
		return `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(s.Name) + `" ` + bare
	}
	return encodedWords(s.Name) + " " + bare
}

// displayed returns an address as the text of an email shows it: as typed, or without its local
// part if that has a mark other than . + - and _. A visitor chooses the address, and mail
// readers make links of what looks like one: victim+www.evil.example/login@example.com would
// put one into an honest sender's mail.
func displayed(a address.Address) string {
	local, domain, _ := strings.Cut(a.String(), "@")
	if isWord(local, ".+-_") {
		return a.String()
	}
	return "…@" + domain
}

func subjectProblem(subject string) string {
	if subject == "" {
		return "is empty"
	}
	return plainTextProblem(subject, maxSubject)
}

// plainTextProblem says why a short text from outside may not go into an email, or nothing. It must be UTF-8, one line and
// not too long. It must have no control characters and none that reorder the text around them.
func plainTextProblem(text string, maxRunes int) string {
	// Four octets are the longest character, so the count stays short.
	switch {
	case len(text) > 4*maxRunes || utf8.RuneCountInString(text) > maxRunes:
		return "is too long"
	case !utf8.ValidString(text):
		return "is not valid UTF-8"
	case strings.ContainsFunc(text, IsControl):
		return "contains a control character"
	}
	return ""
}

// IsControl reports whether r steers the text: C0, C1, line and paragraph separators and
// the bidirectional controls. Zero-width joiners are allowed, since names and emoji need
// them.
func IsControl(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control) || r == '\ufeff'
}

// encodedWords writes text as base64 words with a space between. None cuts a character in
// two, and each fits a line of 76 characters with the longest header name.
func encodedWords(text string) string {
	const most = 36 // octets, which are 48 characters of base64
	var words []string
	for text != "" {
		end := min(most, len(text))
		for end < len(text) && !utf8.RuneStart(text[end]) {
			end--
		}
		words = append(words, "=?UTF-8?B?"+base64.StdEncoding.EncodeToString([]byte(text[:end]))+"?=")
		text = text[end:]
	}
	return strings.Join(words, " ")
}

// isPlain reports whether text is printable ASCII that no reader decodes.
func isPlain(text string) bool { return isPrintable(text) && !strings.Contains(text, "=?") }

func isPrintable(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' })
}

// appendHeader adds one header. Its value must be printable ASCII and not empty, so that
// it can end neither its line nor the block. It is folded after each encoded word: RFC 2047
// limits a line with one to 76 characters.
func appendHeader(to []byte, name, value string) ([]byte, error) {
	if value == "" || !isPrintable(value) {
		return nil, fmt.Errorf("the %s header has an invalid value", name)
	}
	if strings.Contains(value, "=?") {
		value = strings.ReplaceAll(value, "?= ", "?=\r\n ")
	}
	to = append(append(to, name...), ": "...)
	return append(append(to, value...), "\r\n"...), nil
}
