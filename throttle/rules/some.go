package rules

import (
	"net/netip"
	"slices"
	"strings"
)

// Some is some of the sends: those that one of its lists has.
type Some struct {
	// Mailboxes are written as Send.Mailbox is. One that begins with @ is its whole domain, and
	// before the @ a * stands for any characters.
	Mailboxes []string
	Networks  []netip.Prefix
	Callers   []string
	Templates []string
	Purposes  []string
}

// None reports whether it has no send.
func (s *Some) None() bool {
	return len(s.Mailboxes)+len(s.Networks)+len(s.Callers)+len(s.Templates)+len(s.Purposes) == 0
}

// index finds a send in Some by a few look-ups, however long its lists are.
type index struct {
	mailboxes, callers, templates, purposes map[string]bool     // whole domains are among the mailboxes, with their @
	patterns                                map[string][]string // with a *, by the domain and its @
	networks                                map[netip.Prefix]bool
	lengths                                 []int // of the networks
}

func newIndex(s Some) *index {
	if s.None() {
		return nil
	}
	x := &index{callers: setOf(s.Callers), templates: setOf(s.Templates), purposes: setOf(s.Purposes), networks: setOf(s.Networks)}
	x.mailboxes, x.patterns = map[string]bool{}, map[string][]string{}
	for _, pattern := range s.Mailboxes {
		if at := strings.LastIndexByte(pattern, '@'); at >= 0 && strings.Contains(pattern, "*") {
			x.patterns[pattern[at:]] = append(x.patterns[pattern[at:]], pattern[:at])
		} else {
			x.mailboxes[pattern] = true
		}
	}
	for _, p := range s.Networks {
		if !slices.Contains(x.lengths, p.Bits()) {
			x.lengths = append(x.lengths, p.Bits())
		}
	}
	return x
}

func setOf[T comparable](all []T) map[T]bool {
	set := make(map[T]bool, len(all))
	for _, one := range all {
		set[one] = true
	}
	return set
}

func (x *index) has(s Send) bool {
	if x == nil {
		return false
	}
	at := max(0, strings.LastIndexByte(s.Mailbox, '@'))
	return x.mailboxes[s.Mailbox] || x.mailboxes[s.Mailbox[at:]] ||
		slices.ContainsFunc(x.patterns[s.Mailbox[at:]], func(pattern string) bool { return matches(pattern, s.Mailbox[:at]) }) ||
		x.hasNetwork(s.Client.Unmap().WithZone("")) ||
		s.Caller != "" && x.callers[s.Caller] ||
		x.templates[s.Template] || x.purposes[s.Purpose]
}

func (x *index) hasNetwork(client netip.Addr) bool {
	return slices.ContainsFunc(x.lengths, func(bits int) bool {
		p, err := client.Prefix(bits)
		return err == nil && x.networks[p]
	})
}

// matches reports whether text is the pattern, in which each * matches any characters.
func matches(pattern, text string) bool {
	pieces := strings.Split(pattern, "*")
	last := len(pieces) - 1
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
