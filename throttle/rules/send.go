package rules

import (
	"bytes"
	"cmp"
	"errors"
	"net/netip"
	"strings"

	"github.com/mailgate/mailgate/throttle"
)

// Send is what rules can know of an email that is to be sent. The mailbox is required. A rule
// does not apply to a send whose trait is unknown.
type Send struct {
	Mailbox  string     // the recipient, as one text for all its aliases
	Client   netip.Addr // the visitor who requested it
	Caller   string     // the name of the API key that requested it
	Template string
	Purpose  string // of the code in it
	// Solved is the hash of the token of a solved challenge, empty without one. The send spends the token.
	Solved string
	// Unverifiable is an email of which it is never known whether its code was right, as at the SMTP door. No budget
	// counts it.
	Unverifiable bool
}

// Caller returns what rules count the requests of an API key as. Without keys all have one name.
func Caller(key string) string { return cmp.Or(key, "local") }

// AppendText appends the traits of the send as one text, which ParseSend reads. It leaves out unknown traits at the end. A
// new one comes last, as versions of a rolling upgrade read each other's texts.
func (s Send) AppendText(b []byte) []byte {
	b = append(append(b, s.Mailbox...), '\n')
	b = append(append(b, s.Caller...), '\t')
	b, _ = s.Client.AppendText(b) // in full, since exemptions are by address
	b = append(append(b, '\t'), s.Template...)
	b = append(append(b, '\t'), s.Purpose...)
	return bytes.TrimRight(b, "\t")
}

var errText = errors.New("this is not the text of a send")

// ParseSend reads the text of a send. What another version's text does not have is unknown, and what only that version
// knows is ignored.
func ParseSend(text string) (s Send, err error) {
	mailbox, rest, ok := strings.Cut(text, "\n")
	parts := append(strings.Split(rest, "\t"), "", "", "")
	s = Send{Mailbox: mailbox, Caller: parts[0], Template: parts[2], Purpose: parts[3]}
	err = s.Client.UnmarshalText([]byte(parts[1]))
	if !ok || err != nil || s.Client.Zone() != "" || s.Purpose != "" && throttle.CheckName(s.Purpose) != nil {
		return Send{}, errText
	}
	return s, nil
}
