package api

import (
	"cmp"
	"slices"

	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// quota is what rules decided, ready to be told: to senders about a mailbox, to callers about
// an action or about themselves.
type quota struct {
	decision rules.Decision
	// own is the rule whose limits the answer lists: those of decision.Mailbox. Those of
	// any other that refuses are named with it.
	own string
	// partition is what those limits count by, as a keyed hash.
	partition string
	// countdown is a token to ask by how long it still lasts; of sends alone.
	countdown string
}

// quotaOf is the quota of a send to a mailbox.
func (s *Server) quotaOf(mailbox address.Address, d rules.Decision) quota {
	if d.Verdict.Now == 0 { // no rule applies, so none has read a clock
		d.Verdict.Now = s.with.Now()
		d.Verdict.RetryAt = d.Verdict.Now
	}
	return quota{decision: d, own: rules.MailboxRule, partition: mailbox.Hash()}
}

// quotaOfOne is the quota that one limiter alone decides about.
func quotaOfOne(name, partition string, v throttle.Verdict) quota {
	d := rules.Decision{Allowed: v.Allowed, Verdict: v, Mailbox: v, Degraded: v.Degraded}
	if v.Limit != "" {
		d.Rule = name
	}
	if !v.Allowed {
		d.Refusals = []rules.Refusal{{Rule: name, Verdict: v}}
	}
	return quota{decision: d, own: name, partition: partition}
}

// note tells the log what the caller is told.
func (c *call) note(q *quota) {
	c.rule, c.limit, c.degraded = q.decision.Rule, q.decision.Verdict.Limit, q.decision.Degraded
	c.wait = wire.Wait(&q.decision.Verdict)
}

// show puts the limits into the headers, the own ones first.
func (a *answer) show(q *quota) {
	a.limits = wire.Limits(&q.decision.Mailbox, q.partition)
	a.own = len(a.limits)
	for i := range q.decision.Refusals {
		refusal := &q.decision.Refusals[i]
		if refusal.Rule == q.own {
			continue
		}
		for _, limit := range wire.Limits(&refusal.Verdict, "") {
			limit.Name = refusal.Rule + "." + limit.Name
			a.limits = append(a.limits, limit)
		}
	}
}

// told is the quota as the body of an answer tells it, which has been shown it.
func (a *answer) told(q *quota) wire.Verdict {
	v := wire.NewVerdict(q.decision.Rule, &q.decision.Verdict, a.limits[:a.own])
	v.Countdown = q.countdown
	return v
}

// violated are the limits that are full. The own ones are not violated, full or not, if their
// rule refused nothing.
func (a *answer) violated(q *quota) []string {
	if slices.ContainsFunc(q.decision.Refusals, func(r rules.Refusal) bool { return r.Rule == q.own }) {
		return wire.Violated(a.limits)
	}
	return wire.Violated(a.limits[a.own:])
}

// charge is a quota, and the id of what was charged if there is one. Who it is about and what
// may come next are words for a person; those of sends, if empty.
type charge struct {
	quota
	id         throttle.ID
	whom, then string
}

// denied is the problem that a refusal is.
func denied(ch *charge) *problem {
	return &problem{kind: quotaExceeded, retryAfter: wire.Wait(&ch.decision.Verdict), charged: ch}
}

func (ch *charge) whose() string { return cmp.Or(ch.whom, countedBy(ch.decision.By)) }

func (ch *charge) next() string { return cmp.Or(ch.then, "The next mail may be sent") }

// countedBy names for a person what a rule counts by.
func countedBy(by rules.By) string {
	switch by {
	case rules.ByClientIP:
		return "this visitor's address"
	case rules.ByAPIKey:
		return "this caller"
	case rules.ByDomain:
		return "this mailbox's domain"
	case rules.ByTemplate:
		return "this template"
	case rules.ByAll:
		return "this service"
	}
	return "this mailbox"
}
