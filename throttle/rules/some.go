package rules

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Some is some of the sends, by the traits that name them: mailboxes, domains, networks of visitors, callers, templates
// and purposes. A send that has one of the names is among them.
type Some map[By][]Name

// Name is what some sends have as a trait. A mailbox is written as Send.Mailbox is; one that begins with @ is its whole
// domain, and before the @ a * stands for any characters. A domain has all below it. A visitor is written as a network,
// as in 192.0.2.0/24.
type Name struct {
	Text   string
	Line   int32 // that it is written on, 0 if that is unknown
	Listed bool  // the line is one of Case.List
}

// String returns the text alone: where it is written means nothing.
func (n Name) String() string { return n.Text }

// Names returns names that are on no known line.
func Names(texts ...string) []Name {
	all := make([]Name, len(texts))
	for i, text := range texts {
		all[i].Text = text
	}
	return all
}

// None reports whether it has no send.
func (s Some) None() bool {
	for _, names := range s {
		if len(names) > 0 {
			return false
		}
	}
	return true
}

// index finds which of several cases has a send by a few look-ups, however long their lists are.
type index struct {
	cases    []Case
	names    map[By]map[string]entry // but patterns and networks; whole domains are among the mailboxes, with their @
	patterns map[string][]pattern    // by what follows the local part
	networks map[netip.Prefix]entry
	lengths  []int // of the networks, longest first
}

// entry is what an index keeps of a name: which Case has it, from 1, and its line, which is negative if the name is listed.
type entry struct{ n, line int32 }

// pattern is what is before the @ of a mailbox with a *.
type pattern struct {
	local string
	entry
}

// newIndex returns the index of those of all cases that are in shadow, or of those that are not; nil if none has a send.
// Of equal names the first counts.
func newIndex(all []Case, shadow bool) (*index, error) {
	if !slices.ContainsFunc(all, func(c Case) bool { return c.Shadow == shadow && !c.None() }) {
		return nil, nil
	}
	x := &index{cases: all, names: map[By]map[string]entry{}, patterns: map[string][]pattern{}, networks: map[netip.Prefix]entry{}}
	for i, c := range all {
		if c.Shadow != shadow {
			continue
		}
		for by, names := range c.Some {
			if by.List() == "" {
				return nil, fmt.Errorf("no sends are named by %q", by)
			}
			for _, name := range names {
				e := entry{int32(i + 1), name.Line}
				if name.Listed {
					e.line = -e.line
				}
				at := strings.LastIndexByte(name.Text, '@')
				switch {
				case by == ByClientIP:
					p, err := netip.ParsePrefix(name.Text)
					if err != nil {
						return nil, fmt.Errorf("%q is not a network", name.Text)
					}
					put(x.networks, p, e)
					x.lengths = append(x.lengths, p.Bits())
				case by == ByMailbox && at >= 0 && strings.Contains(name.Text, "*"):
					x.patterns[name.Text[at:]] = append(x.patterns[name.Text[at:]], pattern{name.Text[:at], e})
				default:
					if x.names[by] == nil {
						x.names[by] = make(map[string]entry, len(names))
					}
					put(x.names[by], name.Text, e)
				}
			}
		}
	}
	slices.SortFunc(x.lengths, func(a, b int) int { return b - a })
	x.lengths = slices.Compact(x.lengths)
	return x, nil
}

// put enters a name, unless it has an entry or no send has it.
func put[T comparable](into map[T]entry, name T, e entry) {
	var unknown T
	if name != unknown && into[name].n == 0 {
		into[name] = e
	}
}

// find returns the case that has the most exact name of the send, and the entry of that name: an address before its
// domain, and a network before a larger one. The case is nil if none has the send.
func (x *index) find(s Send) (c *Case, e entry) {
	if x == nil {
		return nil, e
	}
	at := max(0, strings.LastIndexByte(s.Mailbox, '@'))
	mailboxes := x.names[ByMailbox]
	e = cmp.Or(mailboxes[s.Mailbox], x.matching(s.Mailbox, at), mailboxes[s.Mailbox[at:]])
	if e.n == 0 {
		e = cmp.Or(x.domain(s.Mailbox[at:]), x.network(s.Client.Unmap().WithZone("")), x.names[ByAPIKey][s.Caller], x.names[ByTemplate][s.Template], x.names[ByPurpose][s.Purpose])
	}
	if e.n > 0 {
		c = &x.cases[e.n-1]
	}
	return c, e
}

func (x *index) matching(mailbox string, at int) (none entry) {
	for _, p := range x.patterns[mailbox[at:]] {
		if matches(p.local, mailbox[:at]) {
			return p.entry
		}
	}
	return none
}

// domain looks for a domain label by label, with the @ before it.
func (x *index) domain(rest string) (none entry) {
	domains := x.names[ByDomain]
	for dot := 0; len(domains) > 0 && dot >= 0 && rest != ""; dot = strings.IndexByte(rest, '.') {
		rest = rest[dot+1:]
		if e := domains[rest]; e != none {
			return e
		}
	}
	return none
}

func (x *index) network(client netip.Addr) (none entry) {
	for _, bits := range x.lengths {
		if p, err := client.Prefix(bits); err == nil && x.networks[p] != none {
			return x.networks[p]
		}
	}
	return none
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
