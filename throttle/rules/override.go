package rules

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle"
)

// Override is another limit of a rule for some of its sends.
type Override struct {
	Some Some
	// Algorithm decides on the records of the rule's Limiter. Nil is a limit of 0: the sends are denied.
	Algorithm throttle.Algorithm
	Comment   string // for people
}

// CheckOverride returns an error unless what is counted by says whether an override is for a send. So one
// limit decides about each record: it is the same for a send and for a look at what was counted, and a home
// may remember what it refuses.
func (b By) CheckOverride(s Some) error {
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

// override makes the limiters of the overrides.
func (r *Rule) override() error {
	some := make([]Some, len(r.Overrides))
	r.limiters = make([]*throttle.Limiter, len(r.Overrides))
	for i, o := range r.Overrides {
		if err := r.By.CheckOverride(o.Some); err != nil {
			return r.wrap(err)
		}
		some[i], r.limiters[i] = o.Some, r.Limiter
		if o.Algorithm != nil {
			r.limiters[i] = r.Limiter.With(o.Algorithm)
		}
	}
	r.overrides = newIndex(some...)
	return nil
}

// LimiterFor returns the limiter that decides about a send, unless the rule denies it.
func (r *Rule) LimiterFor(send Send) *throttle.Limiter {
	if n := r.overrides.find(send); n > 0 {
		return r.limiters[n-1]
	}
	return r.Limiter
}

// Denies reports whether the rule's limit for a send is 0.
func (r *Rule) Denies(send Send) bool {
	n := r.overrides.find(send)
	return n > 0 && r.Overrides[n-1].Algorithm == nil && r.keyOf(send) != ""
}
