package api

import (
	"cmp"
	"hash/fnv"
	"slices"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// quota is what rules decided about a mailbox, an action or a caller, for an answer.
type quota struct {
	decision rules.Decision
	// own is the rule whose limits are in decision.Mailbox. The answer lists them by their names,
	// and those of other rules that refuse after the name of the rule.
	own string
	// partition is the keyed hash of what those limits count by; hash makes that of another rule.
	partition string
	hash      func(key string) string
	// countdown is a token for GET /countdown/{token}; of sends only.
	countdown string
	id        throttle.ID // of what was charged
	whose     string      // what is limited, for people; that of a send, if empty
}

// quotaOf returns the quota of a send to a mailbox.
func (s *Server) quotaOf(mailbox address.Address, d rules.Decision) *quota {
	if d.Verdict.Now == 0 { // no rule applies, so none has read a clock
		d.Verdict.Now = s.with.Now()
		d.Verdict.RetryAt = d.Verdict.Now
	}
	return &quota{decision: d, own: rules.MailboxRule, partition: mailbox.Hash(), hash: s.names.subject}
}

// quotaOfOne returns the quota of one limiter alone.
func quotaOfOne(name, partition string, v throttle.Verdict) *quota {
	d := rules.Decision{Allowed: v.Allowed, Verdict: v, Mailbox: v, Degraded: v.Degraded}
	if v.Limit != "" {
		d.Rule = name
	}
	if !v.Allowed {
		d.Refusals = []rules.Refusal{{Rule: name, Verdict: v}}
	}
	return &quota{decision: d, own: name, partition: partition}
}

// denied returns the problem of a refusal.
func denied(q *quota) *problem {
	return &problem{kind: quotaExceeded, retryAfter: q.retryAfter(), quota: q}
}

// retryAfter returns the milliseconds until the next one is admitted. Where a rule counts several
// mailboxes together each is told up to 3 % more, so that they do not all come back at once.
func (q *quota) retryAfter() int64 {
	wait := wire.Wait(&q.decision.Verdict)
	if q.decision.By == "" || q.decision.By == rules.ByMailbox {
		return wait
	}
	mailbox := fnv.New64a()
	_, _ = mailbox.Write([]byte(q.partition))
	return wait + int64(mailbox.Sum64()%uint64(wait*3/100+1))
}

// note records the decision for the log.
func (r *request) note(q *quota) {
	r.rule, r.limit, r.degraded = q.decision.Rule, q.decision.Verdict.Limit, q.decision.Degraded
	r.wait = wire.Wait(&q.decision.Verdict)
}

// report sets the RateLimit headers, and returns the verdict for the body.
func (q *quota) report(c *fiber.Ctx) wire.Verdict {
	requestOf(c).note(q)
	own := wire.Limits(&q.decision.Mailbox, q.partition)
	if all := append(own, q.others()...); len(all) > 0 {
		set(c, wire.RateLimitPolicyHeader, wire.RateLimitPolicy(all))
		set(c, wire.RateLimitHeader, wire.RateLimit(all))
	}
	v := wire.NewVerdict(q.decision.Rule, &q.decision.Verdict, own)
	v.Countdown = q.countdown
	return v
}

// others returns the limits of the other rules that refuse.
func (q *quota) others() (all []wire.Limit) {
	for i := range q.decision.Refusals {
		refusal := &q.decision.Refusals[i]
		if refusal.Rule == q.own {
			continue
		}
		partition := ""
		if refusal.By != rules.ByAll {
			partition = q.hash(refusal.Key)
		}
		for _, limit := range wire.Limits(&refusal.Verdict, partition) {
			limit.Name = refusal.Rule + "." + limit.Name
			all = append(all, limit)
		}
	}
	return all
}

// violated names the limits that are reached, of the rules that refuse; own are those of q.own.
func (q *quota) violated(own []wire.Limit) []string {
	all := q.others()
	if slices.ContainsFunc(q.decision.Refusals, func(r rules.Refusal) bool { return r.Rule == q.own }) {
		all = append(own, all...)
	}
	return wire.Violated(all)
}

// reached returns the detail of a refusal.
func (q *quota) reached() string {
	whose := cmp.Or(q.whose, countedBy[q.decision.By], "this mailbox")
	return wire.Reached(&q.decision.Verdict, whose)
}

// countedBy names for a person what a rule counts by.
var countedBy = map[rules.By]string{
	rules.ByClientIP: "this visitor's address",
	rules.ByAPIKey:   "this caller",
	rules.ByDomain:   "this mailbox's domain",
	rules.ByTemplate: "this template",
	rules.ByAll:      "this service",
}
