package mailer

import (
	"errors"
	"strings"
	"time"
)

// answering is how a relay answered for a recipient.
type answering int

const (
	notAsked answering = iota // or it is not known whose doing the wait was
	prompt
	slow // or not at all
)

// answering goes by how long the answer to RCPT took, or to all of its group. One
// that took as long as a hurried mail waits at most kept others waiting.
func (c *smtpConn) answering(sent time.Time, failure *SendError) answering {
	switch {
	case failure != nil && failure.Reply == nil && errors.Is(failure, errTimeout),
		time.Since(sent) >= c.opener.options.RCPTTimeout/hurry:
		return slow
	case failure != nil && failure.Reply == nil:
		return notAsked
	}
	return prompt
}

const (
	// mostKnown domains are remembered, those of the last mails.
	mostKnown = 20_000
	// grudge is how long a domain that was slow is a stranger, whatever it does.
	grudge = 10 * 60 * 1000
)

// acquaintances are the domains whose recipients a relay answered for lately, and
// whether it was prompt. A part of the connections is for those that were: so
// those who name ever new domains, of servers that let the relay wait, cannot hold
// all of them.
type acquaintances struct {
	most       int
	young, old map[string]int64 // when a domain was slow; never, if prompt
}

const never = -1

func newAcquaintances(most int) *acquaintances {
	return &acquaintances{most: most, young: map[string]int64{}, old: map[string]int64{}}
}

// prompt says whether the domain is known, and not as slow.
func (a *acquaintances) prompt(domain string) bool {
	when, known := a.when(domain)
	return known && when == never
}

func (a *acquaintances) when(domain string) (when int64, known bool) {
	if when, known = a.young[domain]; !known {
		when, known = a.old[domain]
	}
	return when, known
}

// note takes in how a recipient of the domain was answered for.
func (a *acquaintances) note(domain string, promptly bool, now int64) {
	when, known := a.when(domain)
	switch {
	case !promptly:
		when = now
	case !known || when != never && now-when >= grudge:
		when = never
	}
	if len(a.young) >= a.most/2 {
		a.young, a.old = map[string]int64{}, a.young
	}
	if _, young := a.young[domain]; !young {
		domain = strings.Clone(domain) // and not the whole address that it is cut from
	}
	a.young[domain] = when
}
