package rules

import (
	"errors"
	"fmt"
	"slices"

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
}

// shadowLimit is what a shadow that would have denied a send has as its limit.
const shadowLimit = "denied"

// CheckLimit returns an error unless what is counted by says whether a case with a limit is for a send. So one
// limit decides about each record: it is the same for a send and for a look at what was counted, and a home
// may remember what it refuses.
func (b By) CheckLimit(s Some) error {
	for _, list := range []struct {
		n    int
		what string
		by   []By
	}{
		{len(s.Mailboxes), "mailboxes", []By{ByMailbox}},
		{len(s.Domains), "domains", []By{ByMailbox, ByDomain}},
		{len(s.Networks), "networks", []By{ByClientIP}},
		{len(s.Callers), "api_keys", []By{ByAPIKey}},
		{len(s.Templates), "templates", []By{ByTemplate}},
		{len(s.Purposes), "purposes", []By{ByPurpose}},
	} {
		if list.n > 0 && !slices.ContainsFunc(list.by, b.Has) {
			return fmt.Errorf("the rule counts by %s, so it has no other limits for %s", b, list.what)
		}
	}
	const visitor = 64 // bits of an IPv6 address
	for _, p := range s.Networks {
		if p.Addr().Is6() && p.Bits() > visitor {
			return errors.New("IPv6 visitors are counted by the first 64 bits; a network is /64 or larger")
		}
	}
	if !b.Has(ByMailbox) && slices.ContainsFunc(s.Domains, func(domain string) bool { return address.DomainOf(domain) != domain }) {
		return errors.New("domains are counted as they are registered, with all below them")
	}
	return nil
}

// prepare makes the indexes of the rule and the limiters of its cases.
func (r *Rule) prepare() error {
	some, shadows := make([]Some, len(r.Cases)), make([]Some, len(r.Cases))
	r.limiters = make([]*throttle.Limiter, len(r.Cases))
	for i, c := range r.Cases {
		if c.Limit != nil {
			if err := r.By.CheckLimit(c.Some); err != nil {
				return r.wrap(err)
			}
			r.limiters[i] = r.Limiter.With(c.Limit)
		}
		if c.Shadow {
			shadows[i] = c.Some
		} else {
			some[i] = c.Some
		}
	}
	r.only, r.cases, r.shadows = newIndex(r.Only), newIndex(some...), newIndex(shadows...)
	return nil
}

// meet returns what the rule counts the send under and the limiter that decides, if the rule applies, and the case
// that says so, if one does.
func (r *Rule) meet(send Send) (key string, limiter *throttle.Limiter, c *Case) {
	if r.Budget != nil && send.Unverifiable || r.only != nil && r.only.find(send) == 0 {
		return "", nil, nil
	}
	limiter = r.Limiter
	if n := r.cases.find(send); n > 0 {
		if c, limiter = &r.Cases[n-1], r.limiters[n-1]; limiter == nil {
			return "", nil, c
		}
	}
	return r.By.Key(send), limiter, c
}

// limiterFor returns the limiter that decides about what the rule has counted.
func (r *Rule) limiterFor(send Send) *throttle.Limiter {
	if _, limiter, _ := r.meet(send); limiter != nil {
		return limiter
	}
	return r.Limiter
}

// denied returns the denial of the send, nil if there is none. No home is asked.
func (s *Set) denied(send Send) *Case {
	if n := s.denies.find(send); n > 0 {
		return &s.denials[n-1]
	}
	return nil
}

// shadowsOf are the shadow denials that would have denied the send.
func (s *Set) shadowsOf(send Send) (all []Refusal) {
	for i, x := range s.shadows {
		if x.find(send) > 0 {
			all = append(all, Refusal{Rule: s.denials[i].Name, Verdict: throttle.Verdict{Limit: shadowLimit}})
		}
	}
	return all
}
