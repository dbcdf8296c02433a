package rules

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// Some is some of the sends: those that one of its lists has.
type Some struct {
	// Mailboxes are written as Send.Mailbox is. One that begins with @ is its whole domain, and
	// before the @ a * stands for any characters.
	Mailboxes []string
	Domains   []string // with all below them
	Networks  []netip.Prefix
	Callers   []string
	Templates []string
	Purposes  []string
}

// None reports whether it has no send.
func (s *Some) None() bool {
	return len(s.Mailboxes)+len(s.Domains)+len(s.Networks)+len(s.Callers)+len(s.Templates)+len(s.Purposes) == 0
}

// index finds which of several Some has a send by a few look-ups, however long their lists are. What it
// keeps of each is its number, from 1.
type index struct {
	mailboxes, domains, callers, templates, purposes map[string]int32 // whole domains are among the mailboxes, with their @
	patterns                                         map[string][]pattern
	networks                                         map[netip.Prefix]int32
	lengths                                          []int // of the networks, longest first
}

// pattern is what is before the @ of a mailbox with a *.
type pattern struct {
	local string
	n     int32
}

// newIndex returns the index of some of them in this order, nil if none has a send.
func newIndex(all ...Some) *index {
	if !slices.ContainsFunc(all, func(s Some) bool { return !s.None() }) {
		return nil
	}
	x := &index{mailboxes: map[string]int32{}, patterns: map[string][]pattern{}}
	for i, s := range all {
		n := int32(i + 1)
		for _, mailbox := range s.Mailboxes {
			if at := strings.LastIndexByte(mailbox, '@'); at >= 0 && strings.Contains(mailbox, "*") {
				x.patterns[mailbox[at:]] = append(x.patterns[mailbox[at:]], pattern{mailbox[:at], n})
			} else if x.mailboxes[mailbox] == 0 {
				x.mailboxes[mailbox] = n
			}
		}
		put(&x.domains, s.Domains, n)
		put(&x.networks, s.Networks, n)
		put(&x.callers, s.Callers, n)
		put(&x.templates, s.Templates, n)
		put(&x.purposes, s.Purposes, n)
		for _, p := range s.Networks {
			if !slices.Contains(x.lengths, p.Bits()) {
				x.lengths = append(x.lengths, p.Bits())
			}
		}
	}
	slices.SortFunc(x.lengths, func(a, b int) int { return b - a })
	return x
}

// put enters what a list names, unless an earlier one has it.
func put[T comparable](into *map[T]int32, list []T, n int32) {
	if *into == nil && len(list) > 0 {
		*into = make(map[T]int32, len(list))
	}
	var unknown T // which no send is named by
	for _, one := range list {
		if one != unknown && (*into)[one] == 0 {
			(*into)[one] = n
		}
	}
}

// find returns the number of the list that has the most exact name of the send: an address before its domain, and a
// network before a larger one. It is 0 if none has the send.
func (x *index) find(s Send) int32 {
	if x == nil {
		return 0
	}
	at := max(0, strings.LastIndexByte(s.Mailbox, '@'))
	if n := cmp.Or(x.mailboxes[s.Mailbox], x.matching(s.Mailbox, at), x.mailboxes[s.Mailbox[at:]]); n != 0 {
		return n
	}
	return cmp.Or(x.domain(s.Mailbox[at:]), x.network(s.Client.Unmap().WithZone("")), x.callers[s.Caller], x.templates[s.Template], x.purposes[s.Purpose])
}

func (x *index) matching(mailbox string, at int) int32 {
	for _, p := range x.patterns[mailbox[at:]] {
		if matches(p.local, mailbox[:at]) {
			return p.n
		}
	}
	return 0
}

// domain looks for a domain label by label, with the @ before it.
func (x *index) domain(rest string) int32 {
	for dot := 0; len(x.domains) > 0 && dot >= 0 && rest != ""; dot = strings.IndexByte(rest, '.') {
		rest = rest[dot+1:]
		if n := x.domains[rest]; n != 0 {
			return n
		}
	}
	return 0
}

func (x *index) network(client netip.Addr) int32 {
	for _, bits := range x.lengths {
		if p, err := client.Prefix(bits); err == nil && x.networks[p] != 0 {
			return x.networks[p]
		}
	}
	return 0
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
