package api

import (
	"cmp"

	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/rules"
	"github.com/mailgate/mailgate/throttle"
)

// A standing is what rules say, ready to be told: to senders about a mailbox, to callers
// about an action or about themselves.
type standing struct {
	decision rules.Decision
	// own is the rule whose limits the answer lists: those of decision.Mailbox. Those of
	// any other that refuses are named with it.
	own string
	// countdown is a token to ask by how long it still lasts; of sends alone.
	countdown string
}

// ofSend is the standing of a send.
func (s *Server) ofSend(d rules.Decision) standing {
	if d.Verdict.Now == 0 { // no rule applies, so none has read a clock
		d.Verdict.Now = s.with.Now()
	}
	return standing{decision: d, own: rules.MailboxRule}
}

// ofOne is the standing of what one limiter alone decides.
func ofOne(name string, v throttle.Verdict) standing {
	d := rules.Decision{Allowed: v.Allowed, Verdict: v, Mailbox: v, Degraded: v.Degraded}
	if v.Limit != "" {
		d.Rule = name
	}
	if !v.Allowed {
		d.Refusals = []rules.Refusal{{Rule: name, Verdict: v}}
	}
	return standing{decision: d, own: name}
}

// note tells the log what the caller is told.
func (c *call) note(st *standing) {
	c.rule, c.limit, c.degraded = st.decision.Rule, st.decision.Verdict.Limit, st.decision.Degraded
	c.wait = wire.Wait(&st.decision.Verdict)
}

// show puts the limits into the headers; the own ones are then there for the body.
func (a *answer) show(st *standing) {
	a.limits = wire.AppendLimits(a.limits[:0], &st.decision.Mailbox)
	a.own = len(a.limits)
	for i := range st.decision.Refusals {
		refusal := &st.decision.Refusals[i]
		if refusal.Rule == st.own {
			continue
		}
		start := len(a.limits)
		a.limits = wire.AppendLimits(a.limits, &refusal.Verdict)
		for j := start; j < len(a.limits); j++ {
			a.limits[j].Name = refusal.Rule + "." + a.limits[j].Name
		}
	}
}

// appendStanding adds what every answer about waiting says, without braces. The answer
// has been shown it.
func appendStanding(b []byte, st *standing, out *answer) []byte {
	b = append(b, `"rule":`...)
	b = wire.AppendName(b, st.decision.Rule)
	b = append(b, ',')
	b = wire.AppendVerdict(b, &st.decision.Verdict, out.limits[:out.own])
	if st.countdown != "" {
		b = append(b, `,"countdown":"`...)
		b = append(b, st.countdown...)
		b = append(b, '"')
	}
	return b
}

// violatedFrom is where the limits begin that may have been violated: the own ones
// have not, be they full or not, if their rule refused nothing.
func (st *standing) violatedFrom(out *answer) int {
	for i := range st.decision.Refusals {
		if st.decision.Refusals[i].Rule == st.own {
			return 0
		}
	}
	return out.own
}

// A charge is a standing, and by which reservation if there is one. Who it is about and
// what may come next are words for a person; those of sends, if empty.
type charge struct {
	standing
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
