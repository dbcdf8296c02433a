package rules

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/mailgate/mailgate/internal/recovered"
	"github.com/mailgate/mailgate/throttle"
)

// question is one rule in a round of questions about one send, and its latest answer.
type question struct {
	rule    *Rule
	key     string
	limiter *throttle.Limiter // the one that decides
	trial   bool              // of a shadow case: it is looked at and never charged
	waived  bool              // a solved challenge admits what it refuses
	shown   bool              // the limit in force matters, even if no send has to wait for it

	floor    throttle.SlidingWindow // the limit of a budget whose share decides, as that is more
	verified throttle.Reply         // what the share is of

	resend  bool  // it decides as about a resend
	first   int64 // the wait of a first email, where resend
	verdict throttle.Verdict
	reply   throttle.Reply // of the look, and then of the charge
	err     error          // there is no verdict
	state   state
}

// state is what a rule has been charged.
type state int

const (
	free      state = iota // nothing
	charged                // one send
	uncertain              // unknown: the call failed
)

// questions returns a round of the rules that apply to the send, in the order of charging.
func (s *Set) questions(send Send) []question {
	var round []question // most rules apply to few sends
	solved := send.Solved != "" && s.token != nil
	if solved {
		round = append(round, question{rule: s.token, key: send.Solved, limiter: s.token.Limiter})
	}
	for i := range s.rules {
		r := &s.rules[i]
		key, limiter := r.meet(send)
		if key == "" {
			continue
		}
		round = append(round, question{rule: r, key: key, limiter: limiter, waived: r.Challenge && solved})
		if c, _ := r.shadows.find(send); c != nil && c.limiter != nil {
			round = append(round, question{rule: r, key: key, limiter: c.limiter, trial: true})
		}
	}
	return round
}

// The stages of charging. What can be refunded is charged before what cannot. Queues follow one
// at a time, the widest last; a shadow queue refuses nothing and waits until no rule refuses.
const (
	stageCounters     = iota
	stageQueues       // one for each trait
	stageShadowQueues = stageQueues + 100
)

// looksFirst reports whether a round is asked before it is charged: a rule may refuse, or decides by the look, or
// could not be refunded.
func (s *Set) looksFirst(round []question) bool {
	for i := range round {
		q := &round[i]
		r := q.rule
		if r.Resends != nil {
			return true
		}
		if len(round) > 1 && (q.shadow() || r == s.token || r.widens() || r.Limiter.Algorithm.Queues() || s.full.has(q)) {
			return true
		}
	}
	return false
}

// look decides without charging. If the homes remember that rules refuse, the others are not asked. If the mailbox has an
// email on record, or that is not known, this is a resend.
func (s *Set) look(ctx context.Context, round []question) (Decision, error) {
	if known := s.recall(ctx, round); refused(known) {
		round = known
	}
	if err := s.ask(round, func(q *question) {
		if q.verdict.Tiers == nil {
			q.peek(ctx)
		}
	}); err != nil {
		return Decision{}, err
	}
	mailbox := mailboxIn(round)
	for i := range round {
		if q := &round[i]; q.rule.Resends != nil && !q.trial && q.err == nil && (mailbox == nil || mailbox.verdict.Sent > 0) {
			q.limiter, q.resend, q.first = q.rule.Limiter.With(q.rule.Resends), true, waitOf(&q.verdict)
			q.verdict = q.reply.Peek(q.rule.Resends)
		}
	}
	return decide(round), nil
}

// recall returns the rules of a round that are remembered to refuse, and the mailbox rule, whose verdict is in every
// decision. It leaves out rules with a challenge, which refuse only if all others admit the send, and rules whose limit
// is a share of what was verified.
func (s *Set) recall(ctx context.Context, round []question) (known []question) {
	if !s.remote {
		return nil
	}
	for _, q := range round {
		if q.rule.Challenge || q.trial || q.rule.Resends != nil || q.rule.widens() {
			continue
		}
		v, refuses := q.limiter.Recall(ctx, q.key)
		if v.Allowed = !refuses; refuses || q.rule.Name == MailboxRule {
			q.verdict = v
			known = append(known, q)
		}
	}
	return known
}

// charge takes from a round, stage by stage, until a rule refuses. A stage is one rule, or all rules but queues where
// the limiters are remote.
func (s *Set) charge(ctx context.Context, round []question, id throttle.ID) error {
	for len(round) > 0 {
		now, together := 1, s.remote && round[0].rule.stage == stageCounters
		for together && now < len(round) && round[now].rule.stage == stageCounters {
			now++
		}
		if err := s.ask(round[:now], func(q *question) { q.take(ctx, id) }); err != nil {
			return err
		}
		if refused(round[:now]) {
			return nil
		}
		round = round[now:]
	}
	return nil
}

// refund refunds the charges of a round that was refused, and returns those that failed. A rule that was charged then
// answers as before the charge. The others are asked: also they may refuse, and the answer has the longest wait.
func (s *Set) refund(ctx context.Context, round []question, all []Charge) (failed []Charge, lost, err error) {
	ctx = context.WithoutCancel(ctx)
	failed, _, lost = s.release(ctx, all)
	err = s.ask(round, func(q *question) {
		switch {
		case q.state == charged:
			q.verdict = q.reply.Peek(q.limiter.Algorithm)
		case q.err == nil && q.verdict.Tiers == nil: // not asked so far
			q.peek(ctx)
		case q.verdict.Allowed: // looked at, before another send may have used it up
			if v, err := q.limiter.Peek(ctx, q.key); err == nil {
				q.verdict = v
			}
		}
	})
	return failed, lost, err
}

// charges returns what a round has been charged, and what exact rules may have been charged: to
// release an id that they do not have on record changes nothing.
func charges(round []question, id throttle.ID) (all []Charge) {
	for i := range round {
		q := &round[i]
		at := q.verdict.At
		switch {
		case q.state == charged || q.state == uncertain && q.rule.exact():
		case q.waived && q.rule.Budget != nil && !q.verdict.Allowed:
			at = 0 // nothing is released, but a right code counts
		default:
			continue
		}
		all = append(all, Charge{q.rule.Name, q.rule.By, q.key, throttle.Admission{ID: id, At: at}, q.limiter})
	}
	return all
}

// ask asks all of a round, at once where the limiters are remote. The error of a shadow
// rule stops nothing.
func (s *Set) ask(round []question, do func(*question)) error {
	s.each(len(round), func(i int) { do(&round[i]) })
	for i := range round {
		if q := &round[i]; q.err != nil && !q.shadow() {
			return q.err
		}
	}
	return nil
}

// each calls do with 0 to n-1, at once where the limiters are remote. A panic is the caller's.
func (s *Set) each(n int, do func(int)) {
	if !s.remote || n < 2 {
		for i := range n {
			do(i)
		}
		return
	}
	var all sync.WaitGroup
	panics := make(chan error, n)
	each := func(i int) {
		defer func() {
			if value := recover(); value != nil {
				panics <- recovered.From(value)
			}
		}()
		do(i)
	}
	for i := range n - 1 {
		all.Go(func() { each(i) })
	}
	each(n - 1)
	all.Wait()
	if len(panics) > 0 {
		panic(<-panics)
	}
}

func (q *question) peek(ctx context.Context) {
	var v throttle.Verdict
	r, err := q.limiter.Look(ctx, q.key)
	if err == nil {
		v = r.Peek(q.limiter.Algorithm)
		wider := q.floor != throttle.SlidingWindow{}
		if !wider && (q.shown || v.Remaining() < 2) { // the send waits, or the one after it
			wider, err = q.widen(ctx)
		}
		if wider {
			v = r.Peek(q.limiter.Algorithm)
			q.waitAsShare(&v, r)
		}
	}
	q.verdict, q.reply, q.err = v, r, q.rule.wrap(err)
}

// take charges the rule. A shadow rule that refuses is not charged.
func (q *question) take(ctx context.Context, id throttle.ID) {
	if q.trial {
		return // it was looked at
	}
	v, r, err := q.limiter.Charge(ctx, q.key, id)
	if err == nil && !v.Allowed {
		var wider bool
		if wider, err = q.widen(ctx); wider {
			v, r, err = q.limiter.Charge(ctx, q.key, id)
		}
	}
	if q.floor != (throttle.SlidingWindow{}) && err == nil && v.Wait > 0 {
		if now, unknown := q.limiter.Look(ctx, q.key); unknown == nil {
			q.waitAsShare(&v, now)
		}
	}
	q.verdict, q.reply, q.err = v, r, q.rule.wrap(err)
	switch {
	case errors.Is(err, throttle.ErrUnchanged):
	case err != nil:
		q.state = uncertain
	case v.Allowed:
		q.state = charged
	}
}

func (q question) shadow() bool { return q.rule.Shadow || q.trial }

// refuses reports whether the rule is no shadow, and refuses what no solved challenge admits.
func (q question) refuses() bool { return !q.shadow() && !q.waived && !q.verdict.Allowed }

// refused reports whether a rule refuses.
func refused(round []question) bool { return slices.ContainsFunc(round, question.refuses) }

// mailboxIn returns the mailbox rule in a round, nil where it does not apply or failed.
func mailboxIn(round []question) *question {
	for i := range round {
		if q := &round[i]; q.rule.Name == MailboxRule && !q.trial && q.err == nil {
			return q
		}
	}
	return nil
}

// nextAsResend has the rules that keep quota for first emails wait as the email after this first one, a resend, by
// the records before it.
func nextAsResend(round []question, id throttle.ID) {
	for i := range round {
		if q := &round[i]; q.rule.Resends != nil && !q.resend && !q.trial && q.state == charged {
			next, _ := q.limiter.Algorithm.Take(q.reply.State, throttle.Admission{ID: id, At: q.verdict.At})
			v := q.rule.Resends.Peek(next, q.verdict.Now)
			q.resend, q.first = true, waitOf(&q.verdict)
			if waitOf(&v) > q.first {
				v.Allowed, v.Delay, v.Degraded, v.Admission = true, q.verdict.Delay, q.verdict.Degraded, q.verdict.Admission
				q.verdict = v
			}
		}
	}
}

// waitAsFirst shortens the wait of a resend to when its mailbox is forgotten, by the mailbox rule's clock: from then
// on it is a first email, and waits as one.
func (q *question) waitAsFirst(mailbox *throttle.Verdict) {
	wait := max(1, q.first)
	if mailbox.Sent > 0 {
		longest := mailbox.Tiers[len(mailbox.Tiers)-1].Window.Milliseconds()
		wait = max(wait, mailbox.Newest+longest-mailbox.Now)
	}
	if v := &q.verdict; waitOf(v) > wait {
		v.Wait, v.RetryAt = wait, v.Now+wait
	}
}

// waitOf returns how long to wait by the verdict's own clock.
func waitOf(v *throttle.Verdict) int64 { return v.RetryAt - v.Now }
