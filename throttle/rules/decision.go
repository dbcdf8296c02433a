package rules

import (
	"slices"

	"github.com/mailgate/mailgate/throttle"
)

// Decision is the answer of all rules together.
type Decision struct {
	// Allowed reports whether the send is admitted; after Peek, whether one would be.
	Allowed bool
	// Challenge reports that rules with a challenge alone refuse: a solved one would admit the send.
	Challenge bool
	// Denied is what denies the send for good, whatever the limits: the name of a denial.
	Denied string
	// Rule is the name of the rule that makes the next such send wait longest, By is what it counts by, and Verdict
	// its verdict. A rule with a challenge makes no send wait, so it is named only if Challenge is set. Rule is empty if
	// nothing has to wait; then Verdict has only the clock.
	Rule    string
	By      By
	Verdict throttle.Verdict
	// Mailbox is the verdict of MailboxRule, whichever rule refuses. A charge that is still
	// to be released does not count in it. It has no tiers for an exempt mailbox.
	Mailbox throttle.Verdict
	// Delay is how many milliseconds the admitted send has to be held back.
	Delay int64
	// Degraded reports that a rule decided by this node's own records.
	Degraded bool
	// Refusals are all rules that refused.
	Refusals []Refusal
	// Shadow are the shadow rules that would have refused what all others admit, and those
	// that failed.
	Shadow []Refusal
	// Charges are what this send has been charged. After a refusal or an error they could
	// not be refunded at once and are still to be released.
	Charges []Charge
	// Lost is why counters keep the charge of a send that was refused: a refund of theirs must not be repeated.
	Lost error
}

// Refusal is a rule that refused, or a shadow rule that failed.
type Refusal struct {
	Rule    string
	By      By
	Key     string // what the rule counts the send by
	Verdict throttle.Verdict
	Err     error // of a shadow rule
}

// Charge is what one rule has counted for one send.
type Charge struct {
	Rule      string
	By        By
	Key       string
	Admission throttle.Admission

	limiter *throttle.Limiter // that charged it
}

// decide joins the verdicts of a round. The rule to wait for is, of a refusal, the one that
// refuses longest and, of an admission, the one that the next send has to wait for.
func decide(round []question) Decision {
	d := Decision{Allowed: !refused(round)}
	d.Challenge = !d.Allowed && !slices.ContainsFunc(round, func(q question) bool { return q.refuses() && !q.rule.Challenge })
	if m := mailboxIn(round); m != nil {
		d.Mailbox = m.verdict
		for i := range round {
			if round[i].resend {
				round[i].waitAsFirst(&m.verdict)
			}
		}
	}
	var now int64
	for i := range round {
		q := &round[i]
		now = max(now, q.verdict.Now)
		d.Degraded = d.Degraded || q.verdict.Degraded
		if q.shadow() {
			if q.err != nil || d.Allowed && !q.verdict.Allowed {
				d.Shadow = append(d.Shadow, Refusal{q.rule.Name, q.rule.By, q.key, q.verdict, q.err})
			}
			continue
		}
		if q.waived && !q.verdict.Allowed {
			continue
		}
		if !q.verdict.Allowed {
			d.Refusals = append(d.Refusals, Refusal{Rule: q.rule.Name, By: q.rule.By, Key: q.key, Verdict: q.verdict})
		}
		if q.verdict.Allowed == d.Allowed {
			d.Delay = max(d.Delay, q.verdict.Delay) // 0 in a refusal
			if q.rule.Challenge == d.Challenge && waitOf(&q.verdict) > waitOf(&d.Verdict) {
				d.Rule, d.By, d.Verdict = q.rule.Name, q.rule.By, q.verdict
			}
		}
	}
	if d.Rule == "" {
		d.Verdict.Now, d.Verdict.RetryAt = now, now
	}
	d.Verdict.Allowed, d.Verdict.Degraded = d.Allowed, d.Degraded
	return d
}
