package mailer

import (
	"errors"
	"net/mail"
	"strings"
	"unicode/utf8"
)

// maxSenderName is as long as a display name may be, in characters.
const maxSenderName = 64

// Sender is whom mails come from.
type Sender struct {
	// Name is the display name; it may be empty.
	Name string
	// Address is the address in the From header and in the envelope.
	Address Address
}

// ParseSender reads `Acme <no-reply@acme.example>` or a bare address. A name
// with a comma or another mark stands in double quotes. The address obeys the
// same rules as a recipient's. Errors do not repeat the text.
func ParseSender(text string) (Sender, error) {
	// net/mail is quadratic on long input: the length comes first.
	if len(text) > maxAddress+4*maxSenderName+4 {
		return Sender{}, errors.New("mailer: the sender is too long")
	}
	parsed, err := mail.ParseAddress(text)
	if err != nil {
		// The library's reason quotes what it read.
		return Sender{}, errors.New(`mailer: the sender must read like: Acme <no-reply@acme.example>, with the name in double quotes if it has marks such as a comma`)
	}
	name := strings.TrimSpace(parsed.Name)
	if problem := plainTextProblem(name, maxSenderName); problem != "" {
		return Sender{}, errors.New("mailer: the sender's name " + problem)
	}
	address, err := ParseAddress(parsed.Address, Identity{})
	if err != nil {
		return Sender{}, errors.New("mailer: the sender's address: " + err.Error())
	}
	return Sender{Name: name, Address: address}, nil
}

// header is the value for From. A name with marks stands in quotes, so that none of
// them is taken for structure on the way, and one that is not ASCII, or looks like
// an encoded word, is written as encoded words. Filters of spam count against a mail
// what is encoded without need.
func (s Sender) header() string {
	address := "<" + s.Address.String() + ">"
	switch {
	case s.Name == "":
		return address
	case isWord(s.Name, " "):
		return s.Name + " " + address
	case isPrintable(s.Name) && !strings.Contains(s.Name, "=?"):
		return `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(s.Name) + `" ` + address
	}
	return encodedWords(s.Name) + " " + address
}

// plainTextProblem says why a short text from outside may not go into a mail,
// or nothing: it must be UTF-8, one line, not too long, and free of control
// characters and of those that reorder the text around them.
func plainTextProblem(text string, maxRunes int) string {
	// Four octets are the longest character: the count below stays short.
	if len(text) > 4*maxRunes || utf8.RuneCountInString(text) > maxRunes {
		return "is too long"
	}
	if !utf8.ValidString(text) {
		return "is not valid UTF-8"
	}
	for _, r := range text {
		if isControl(r) {
			return "contains a control character"
		}
	}
	return ""
}

// isControl reports whether r steers the text instead of being part of it: C0,
// C1, line and paragraph separators, and the bidirectional controls. Zero-width
// joiners stay allowed: names and emoji are written with them.
func isControl(r rune) bool {
	switch {
	case r < 0x20, 0x7f <= r && r <= 0x9f:
		return true
	case r == '\u2028', r == '\u2029':
		return true
	case '\u202a' <= r && r <= '\u202e', '\u2066' <= r && r <= '\u2069':
		return true
	case r == '\u200e', r == '\u200f', r == '\u061c', r == '\ufeff':
		return true
	}
	return false
}
