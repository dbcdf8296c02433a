package rules

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle"
)

// Case is some of the sends that a rule, or a Set, treats in another way. Of several cases for a send, the one with the
// most exact name decides: a mailbox before its domain, and a network before a larger one. Of two traits it is the first of
// mailbox, domain, visitor, API key, template and purpose.
type Case struct {
	Some
	// Limit decides on the records of the rule's Limiter, without Resends. A case of a rule without one is not counted.
	Limit   throttle.Algorithm
	Name    string // of a denial
	Comment string // for people
	Shadow  bool   // it reports what it would have refused, and changes nothing
	// File is where the case is written, and List a file with names of it. They are told to people, and not read.
	File, List string

	limiter *throttle.Limiter // that decides by Limit; nil without one
}

// What a case does, in the words of a file of rules.
const (
	Deny     = "deny"
	Exempt   = "exempt"
	Override = "override"
)

// Match is a case that decides about a send, and where the name that the send has is written.
type Match struct {
	Rule    string `json:"rule"` // of which it is a case; the name of a denial
	Does    string `json:"does"` // Deny, Exempt or Override
	Shadow  bool   `json:"shadow,omitzero"`
	Comment string `json:"comment,omitempty"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitzero"` // 0 if it is unknown
}

// String returns the match as one line without any name of a send: "mailbox: override (tests of sign-up, rules.yaml:7)".
func (m Match) String() string {
	does := m.Does
	if m.Shadow {
		does = "shadow " + does
	}
	place := m.File
	if m.Line > 0 {
		place += ":" + strconv.Itoa(m.Line)
	}
	why := strings.Trim(m.Comment+", "+place, ", ")
	if why != "" {
		why = " (" + why + ")"
	}
	return m.Rule + ": " + does + why
}

// matchesIn returns what is told of the cases in some indexes that decide about a send. They are of a rule, or are denials.
func matchesIn(send Send, rule string, of ...*index) []Match {
	all := []Match{}
	for _, x := range of {
		c, e := x.find(send)
		if c == nil {
			continue
		}
		m := Match{Rule: rule, Does: Exempt, Shadow: c.Shadow, Comment: c.Comment, File: c.File, Line: int(e.line)}
		switch {
		case rule == "":
			m.Rule, m.Does = c.Name, Deny
		case c.Limit != nil:
			m.Does = Override
		}
		if e.line < 0 {
			m.File, m.Line = c.List, -m.Line
		}
		all = append(all, m)
	}
	return all
}

// Matches returns the cases that decide about a send, in the order of the rules: of a denied send the denial alone. Those
// in shadow are beside the others. No home is asked.
func (s *Set) Matches(send Send) []Match {
	if denied := matchesIn(send, "", s.denies); len(denied) > 0 {
		return denied
	}
	all := []Match{}
	for i := range s.rules {
		all = append(all, s.rules[i].Matches(send)...)
	}
	return append(all, matchesIn(send, "", s.shadows...)...)
}

// Matches returns the cases of the rule that decide about a send.
func (r *Rule) Matches(send Send) []Match {
	if !r.counts(send) {
		return []Match{}
	}
	return matchesIn(send, r.Name, r.cases, r.shadows)
}

// shadowLimit is what a shadow that would have denied a send has as its limit.
const shadowLimit = "denied"

// CheckLimit returns an error unless what is counted by says whether a case with a limit is for a send. So one
// limit decides about each record: it is the same for a send and for a look at what was counted, and a home
// may remember what it refuses.
func (b By) CheckLimit(s Some) error {
	for _, by := range Bys() {
		if len(s[by]) > 0 && !b.Has(by) && !(by == ByDomain && b.Has(ByMailbox)) {
			return fmt.Errorf("the rule counts by %s, so it has no other limits for %s", b, by.List())
		}
	}
	const visitor = 64 // bits of an IPv6 address
	for _, name := range s[ByClientIP] {
		if p, err := netip.ParsePrefix(name.Text); err == nil && p.Addr().Is6() && p.Bits() > visitor {
			return errors.New("IPv6 visitors are counted by the first 64 bits; a network is /64 or larger")
		}
	}
	if !b.Has(ByMailbox) && slices.ContainsFunc(s[ByDomain], func(name Name) bool { return address.DomainOf(name.Text) != name.Text }) {
		return errors.New("domains are counted as they are registered, with all below them")
	}
	return nil
}

// prepare makes the indexes of the rule, the limiters of its cases and its stage.
func (r *Rule) prepare() (err error) {
	if r.Limiter.Algorithm.Queues() {
		r.stage = stageQueues + slices.Index(Bys(), r.By.Traits()[0])
		if r.Shadow {
			r.stage = stageShadowQueues
		}
	}
	if _, window := r.Limiter.Algorithm.(throttle.SlidingWindow); r.widens() && !window {
		err = errors.New("a share of what was verified needs a sliding-window")
	}
	r.Cases = slices.Clone(r.Cases)
	for i := range r.Cases {
		if c := &r.Cases[i]; c.Limit != nil {
			err = cmp.Or(err, r.By.CheckLimit(c.Some))
			c.limiter = r.Limiter.With(c.Limit)
		}
	}
	var wrong [3]error
	r.only, wrong[0] = newIndex([]Case{{Some: r.Only}}, false)
	r.cases, wrong[1] = newIndex(r.Cases, false)
	r.shadows, wrong[2] = newIndex(r.Cases, true)
	return r.wrap(cmp.Or(err, wrong[0], wrong[1], wrong[2]))
}

// counts reports whether the rule is for the send, if no case is.
func (r *Rule) counts(send Send) bool {
	if r.Budget != nil && send.Unverifiable {
		return false
	}
	only, _ := r.only.find(send)
	return r.only == nil || only != nil
}

// meet returns what the rule counts the send under and the limiter that decides, if the rule applies.
func (r *Rule) meet(send Send) (key string, limiter *throttle.Limiter) {
	if !r.counts(send) {
		return "", nil
	}
	limiter = r.Limiter
	if c, _ := r.cases.find(send); c != nil {
		limiter = c.limiter
	}
	if limiter == nil {
		return "", nil
	}
	return r.By.Key(send), limiter
}

// limiterFor returns the limiter that decides about what the rule has counted.
func (r *Rule) limiterFor(send Send) *throttle.Limiter {
	if _, limiter := r.meet(send); limiter != nil {
		return limiter
	}
	return r.Limiter
}
