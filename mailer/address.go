package mailer

import "strings"

// The lengths RFC 5321 allows (4.5.3.1): 64 octets before the @, and a path of
// 256 with its brackets, which leaves 254 for the address.
const (
	maxAddress = 254
	maxLocal   = 64
	maxLabel   = 63
)

// Address is one mailbox: what RCPT TO gets (String) and what its sends are
// counted under (Key). Both come from one parse, so they cannot disagree about
// who is meant. ParseAddress alone makes one; the zero Address is no address.
//
// An Address shares no memory with the text it was parsed from. Logged or
// printed, it shows its Hash and never itself: whoever wants the address says
// String.
type Address struct {
	wire string
	key  string
	logs *logKey
}

// ParseAddress reads one address, without a display name, and refuses whatever
// could be read in two ways, or sent on to somebody else than it seems to name.
// The error is always an *AddressError; it says what is wrong and never repeats
// the text. Time and memory do not grow with hostile input: anything longer
// than 254 octets is refused unread.
func ParseAddress(text string, identity Identity) (Address, error) {
	if reason := checkText(text); reason != "" {
		return Address{}, &AddressError{Reason: reason}
	}
	at := strings.IndexByte(text, '@')
	if reason := checkLocal(text[:at]); reason != "" {
		return Address{}, &AddressError{Reason: reason}
	}
	var room [2 * maxAddress]byte // on the stack: the one allocation is the result
	wire := append(room[:0], text[:at+1]...)
	wire, reason := appendDomain(wire, text[at+1:])
	if reason == "" && len(wire) > maxAddress {
		reason = ReasonTooLong
	}
	if reason != "" {
		return Address{}, &AddressError{Reason: reason}
	}
	return identity.address(wire, at), nil
}

// String is the address as RCPT TO gets it: the local part as it was typed, the
// domain in lower-case ASCII.
func (a Address) String() string { return a.wire }

// Key names the mailbox: equal for two addresses exactly if, by the rules of
// the Identity it was parsed with, they reach one mailbox. A key is itself an
// address, and its own key.
func (a Address) Key() string { return a.key }

// IsZero reports whether a is the zero Address.
func (a Address) IsZero() bool { return a.wire == "" }
