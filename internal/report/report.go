// Package report puts a decision about limits into the words of every door: members of a JSON answer,
// header fields, members of a log line, and the line of an SMTP reply.
//
// A Report is made once of a decision and then only read. It knows no clock but the decision's.
package report

import (
	"fmt"
	"hash/fnv"
	"strconv"

	"github.com/mailgate/mailgate/internal/wire"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// Report is what callers are told of a decision.
type Report struct {
	// Rule and Limit make the next one wait longest. They are empty if nothing has to wait.
	Rule, Limit string
	// Wait is how many milliseconds after Now the next one is admitted, which is at RetryAt. Where the
	// clock has stepped back that is more than the verdict's own wait.
	Wait, RetryAt, Now int64
	Delay              int64  // milliseconds that what is admitted is held back
	Degraded           bool   // decided without the shared records
	Countdown          string // a token to ask for the wait with; empty if there is none

	Limits   Limits   // of what the report is about
	others   Limits   // of the other rules that refuse, named rule.limit
	violated []string // the limits that refuse
	whose    string   // what Limit limits, for people
	mailbox  string   // the partition of a send that shares the rule with others
}

// Of returns the report of a send to a mailbox, which is given as its hash. hash makes the hash of what
// another rule counts by. now is used if no rule applies, as the decision then has no time.
func Of(d *rules.Decision, mailbox string, hash func(key string) string, now int64) Report {
	r := of(d.Rule, &d.Verdict, LimitsOf(&d.Mailbox, mailbox))
	r.Delay, r.Degraded, r.whose = d.Delay, d.Degraded, d.By.Whose()
	if r.Now == 0 {
		r.Now, r.RetryAt = now, now
	}
	if d.By != "" && !d.By.Has(rules.ByMailbox) {
		r.mailbox = mailbox
	}
	for i := range d.Refusals {
		if refusal := &d.Refusals[i]; refusal.Rule == rules.MailboxRule {
			r.violated = r.Limits.full()
		} else {
			r.others = append(r.others, named(refusal, hash)...)
		}
	}
	r.violated = append(r.violated, r.others.full()...)
	return r
}

// OfOne returns the report of one limiter alone: of an action, a rule, or requests. Its partition is a
// hash of what it counts by.
func OfOne(name, whose, partition string, v *throttle.Verdict) Report {
	if v.Limit == "" {
		name = ""
	}
	r := of(name, v, LimitsOf(v, partition))
	r.Delay, r.whose = v.Delay, whose
	if !v.Allowed {
		r.violated = r.Limits.full()
	}
	return r
}

func of(rule string, v *throttle.Verdict, limits Limits) Report {
	return Report{
		Rule: rule, Limit: v.Limit, Wait: v.RetryAt - v.Now, RetryAt: v.RetryAt, Now: v.Now, Degraded: v.Degraded, Limits: limits,
	}
}

// named returns the limits of another rule that refuses.
func named(refusal *rules.Refusal, hash func(key string) string) Limits {
	partition := ""
	if refusal.By != rules.ByAll {
		partition = hash(refusal.Key)
	}
	all := LimitsOf(&refusal.Verdict, partition)
	for i := range all {
		all[i].Name = refusal.Rule + "." + all[i].Name
	}
	return all
}

// RetryAfter is Wait for a Retry-After header. Where a rule counts several mailboxes together each is
// told up to 3 % more, always the same, so that they do not all come back at once.
func (r *Report) RetryAfter() int64 {
	if r.mailbox == "" {
		return r.Wait
	}
	spread := fnv.New64a()
	_, _ = spread.Write([]byte(r.mailbox))
	return r.Wait + int64(spread.Sum64()%uint64(r.Wait*3/100+1))
}

// AppendTo adds the members of every answer with the report to an object.
func (r *Report) AppendTo(o *wire.Object) {
	r.appendWait(o)
	o.Raw("limits", nil)
	*o = r.Limits.append(*o)
	o.Bool("degraded", r.Degraded)
	if r.Countdown != "" {
		o.String("countdown", r.Countdown)
	}
}

func (r *Report) appendWait(o *wire.Object) {
	o.StringOrNull("rule", r.Rule)
	o.StringOrNull("limit", r.Limit)
	o.Int("wait_ms", r.Wait)
	o.Time("retry_at", r.RetryAt)
	o.Time("server_time", r.Now)
}

// Remaining returns an object with the wait alone.
func (r *Report) Remaining() []byte {
	var o wire.Object
	r.appendWait(&o)
	return o.End()
}

// Refusal writes the problem of a refusal over text: which limit of whose is reached, and when to try
// again.
func (r *Report) Refusal(text []byte) []byte {
	o := wire.Object(text[:0])
	o.Problem(wire.Quota, "Quota exceeded", 429, "The "+r.Limit+" limit of "+r.whose+" is reached. Try again in "+
		strconv.FormatInt(wire.Seconds(r.Wait), 10)+" s.")
	r.AppendTo(&o)
	o.Strings("violated-policies", r.violated)
	return o.End()
}

// Words tell a visitor of a refusal, with the wait rounded up.
func (r *Report) Words() string {
	wait, unit := max(wire.Seconds(r.RetryAfter()), 2), "seconds"
	switch {
	case wait > 2*3600:
		wait, unit = (wait+3599)/3600, "hours"
	case wait > 2*60:
		wait, unit = (wait+59)/60, "minutes"
	}
	return fmt.Sprintf("The %s limit of %s is reached. Try again in %d %s.", r.Limit, r.whose, wait, unit)
}

// SMTP returns the line of a reply that refuses; the id finds it in the log.
func (r *Report) SMTP(id string) string {
	return fmt.Sprintf("limit %q of %s reached; next email in %d ms (%d s) [%s]", r.Limit, r.whose, r.Wait, wire.Seconds(r.Wait), id)
}

// AppendSaid adds a member with what each limit said, the mailbox's first: what remains, and the wait if there is one.
func (r *Report) AppendSaid(o *wire.Object) {
	if len(r.Limits)+len(r.others) == 0 {
		return
	}
	var text [256]byte
	said := text[:0]
	for _, all := range []Limits{r.Limits, r.others} {
		for i := range all {
			if len(said) > 0 {
				said = append(said, ", "...)
			}
			said = append(append(said, all[i].Name...), ' ')
			said = append(strconv.AppendInt(said, int64(all[i].Remaining), 10), " of "...)
			said = append(strconv.AppendInt(said, int64(all[i].Max), 10), " left"...)
			if all[i].Wait > 0 {
				said = append(strconv.AppendInt(append(said, ", wait "...), all[i].Wait, 10), " ms"...)
			}
		}
	}
	o.Text("said", said)
}

// AppendLog adds the members of a log line with the report.
func (r *Report) AppendLog(o *wire.Object) {
	if r.Rule != "" {
		o.String("rule", r.Rule)
	}
	if r.Limit != "" {
		o.String("limit", r.Limit)
	}
	if r.Wait > 0 {
		o.Int("wait_ms", r.Wait)
	}
	if r.Delay > 0 {
		o.Int("delay_ms", r.Delay)
	}
	if r.Degraded {
		o.Bool("degraded", true)
	}
}
