package rules

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// Send is what rules can know of an email that is to be sent. The mailbox is required. A rule
// does not apply to a send whose trait is unknown.
type Send struct {
	Mailbox  string     // the recipient, as one text for all its aliases
	Client   netip.Addr // the visitor who requested it
	Caller   string     // the name of the API key that requested it
	Template string
}

// Caller returns what rules count the requests of an API key as. Without keys all have one name.
func Caller(key string) string { return cmp.Or(key, "local") }

// Exempt is the sends that a rule does not count: to some mailboxes, for visitors in some
// networks, or by some callers.
type Exempt struct {
	// Mailboxes are written as Send.Mailbox is. One that begins with @ is its whole domain, and
	// before the @ a * stands for any characters.
	Mailboxes []string
	Networks  []netip.Prefix
	Callers   []string
}

func (e *Exempt) covers(s Send) bool {
	return slices.ContainsFunc(e.Mailboxes, func(pattern string) bool { return mailboxMatches(pattern, s.Mailbox) }) ||
		slices.ContainsFunc(e.Networks, func(p netip.Prefix) bool { return p.Contains(s.Client.Unmap().WithZone("")) }) ||
		s.Caller != "" && slices.Contains(e.Callers, s.Caller)
}

// mailboxMatches compares the two sides of the @ separately, so that no * reaches across it.
func mailboxMatches(pattern, mailbox string) bool {
	at, end := strings.LastIndexByte(mailbox, '@'), strings.LastIndexByte(pattern, '@')
	if at < 0 || end < 0 || mailbox[at:] != pattern[end:] {
		return false
	}
	return end == 0 || matches(pattern[:end], mailbox[:at])
}

// matches reports whether text is the pattern, in which each * matches any characters.
func matches(pattern, text string) bool {
	pieces := strings.Split(pattern, "*")
	last := len(pieces) - 1
	if last == 0 {
		return text == pattern
	}
	text, begins := strings.CutPrefix(text, pieces[0])
	text, ends := strings.CutSuffix(text, pieces[last])
	for _, piece := range pieces[1:last] {
		_, after, found := strings.Cut(text, piece)
		if !found {
			return false
		}
		text = after
	}
	return begins && ends
}
