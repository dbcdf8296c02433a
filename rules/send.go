package rules

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/mailgate/mailgate/network"
)

// A Send is what rules can know of a mail that is to be sent. The mailbox is required. What
// else is empty is not known, and rules that count by it do not apply.
type Send struct {
	Mailbox  string     // whom it is for, as one text for all its aliases
	Domain   string     // the mailbox's, as somebody registered it: without subdomains
	Client   netip.Addr // the visitor who asked for it
	Caller   string     // the back end that asked for it: its key's name
	Template string
}

// A By is the trait that a rule counts sends by.
type By string

// All traits there are. ByAll counts every send alike.
const (
	ByMailbox  By = "mailbox"
	ByClientIP By = "client_ip"
	ByAPIKey   By = "api_key"
	ByDomain   By = "domain"
	ByTemplate By = "template"
	ByAll      By = "all"
)

// Bys are all traits, in the order in which a person would name them: those that few sends
// have in common come first.
func Bys() []By { return []By{ByMailbox, ByClientIP, ByAPIKey, ByDomain, ByTemplate, ByAll} }

// width grows with how many sends have the trait in common.
func (b By) width() int { return slices.Index(Bys(), b) }

// Key is the text that stands for the send's trait, empty if it is not known.
func (b By) Key(s Send) string {
	switch b {
	case ByMailbox:
		return s.Mailbox
	case ByClientIP:
		return network.Visitor(s.Client)
	case ByAPIKey:
		return s.Caller
	case ByDomain:
		return s.Domain
	case ByTemplate:
		return s.Template
	case ByAll:
		return "all"
	}
	return ""
}

// An Exempt is the sends that a rule leaves alone: to some mailboxes, such as those of
// end-to-end tests, for visitors in some networks, or by some callers.
type Exempt struct {
	// Mailboxes are as Send.Mailbox has them. One that begins with @ stands for its
	// whole domain, and * for any characters before the @.
	Mailboxes []string
	Networks  []netip.Prefix
	Callers   []string
}

func (e *Exempt) covers(s Send) bool {
	return slices.ContainsFunc(e.Mailboxes, func(pattern string) bool { return mailboxMatches(pattern, s.Mailbox) }) ||
		slices.ContainsFunc(e.Networks, func(p netip.Prefix) bool { return p.Contains(s.Client.Unmap().WithZone("")) }) ||
		s.Caller != "" && slices.Contains(e.Callers, s.Caller)
}

// mailboxMatches compares the two sides of the @ apart, so that no * reaches across it.
func mailboxMatches(pattern, mailbox string) bool {
	at, end := strings.LastIndexByte(mailbox, '@'), strings.LastIndexByte(pattern, '@')
	if at < 0 || end < 0 || mailbox[at:] != pattern[end:] {
		return false
	}
	return end == 0 || matches(pattern[:end], mailbox[:at])
}

// matches reports whether text is the pattern, in which each * stands for any
// characters or none.
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
