package rules

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mailgate/mailgate/throttle"
)

// MailboxRule is the name of the rule that protects whoever is mailed. Every Set has it.
const MailboxRule = "mailbox"

// A Rule counts sends by one trait and refuses those beyond its limit.
type Rule struct {
	Name    string
	By      By
	Limiter throttle.Limiter
	// Resends decides about mails to a mailbox that was sent one inside MailboxRule's
	// longest window, in place of Limiter and on the same records: one that refuses
	// earlier keeps the rest for first mails. Nil leaves them to Limiter.
	Resends throttle.Limiter
	// Queues says that the limiter lets sends wait for their turn. Turns that were told
	// cannot be taken back, so it is charged when all others have said yes, and of several
	// each when the one before has, ByAll at the end.
	Queues bool
	// Shadow lets the rule count and be heard, and refuse nothing. It counts what it
	// would have admitted, and is not charged for the rest.
	Shadow bool
	Exempt Exempt

	turn turn
}

// A Set is rules that all have to say yes. It never changes and may be shared. New makes one;
// of the zero Set every Take and Peek is an error.
type Set struct {
	rules   []Rule
	mailbox throttle.Historian
	remote  bool
}

// Options say how a Set asks its rules.
type Options struct {
	// Remote is for limiters that are a network away: they are asked all at once, so
	// that ten take as long as one. Only of queues does each but the first take as long again.
	Remote bool
}

// New checks the rules. One of them is MailboxRule; its limiter keeps histories.
func New(o Options, all ...Rule) (*Set, error) {
	s := &Set{rules: slices.Clone(all), remote: o.Remote}
	seen := map[string]bool{}
	for _, r := range all {
		if err := throttle.CheckName(r.Name); err != nil {
			return nil, fmt.Errorf("rule %.32q: %w", r.Name, err)
		}
		switch {
		case seen[r.Name]:
			return nil, fmt.Errorf("rule %s: the name is used twice", r.Name)
		case r.Limiter == nil:
			return nil, fmt.Errorf("rule %s: it has no limiter", r.Name)
		case r.By.Key(everything) == "":
			return nil, fmt.Errorf("rule %s: nothing can be counted by %q", r.Name, r.By)
		}
		seen[r.Name] = true
		if r.Name == MailboxRule {
			historian, ok := r.Limiter.(throttle.Historian)
			if !ok || r.By != ByMailbox {
				return nil, errors.New("rule mailbox: it counts by mailbox, and keeps every send")
			}
			s.mailbox = historian
		}
	}
	if s.mailbox == nil {
		return nil, errors.New("there is no rule mailbox")
	}
	lanes := slices.ContainsFunc(s.rules, func(r Rule) bool { return r.Resends != nil })
	for i := range s.rules {
		s.rules[i].turn = turnOf(&s.rules[i], lanes)
	}
	slices.SortStableFunc(s.rules, inTurn)
	return s, nil
}

// everything is a send of which all is known.
var everything = Send{Mailbox: "m", Domain: "d", Client: loopback, Caller: "c", Template: "t"}

// Mailbox is the limiter of the rule of that name.
func (s *Set) Mailbox() throttle.Historian { return s.mailbox }

// Rule finds the one of that name. What it has on record of a send is under By.Key.
func (s *Set) Rule(name string) (r Rule, known bool) {
	i := slices.IndexFunc(s.rules, func(r Rule) bool { return r.Name == name })
	if i < 0 {
		return r, false
	}
	return s.rules[i], true
}

// CountsBy reports whether a rule counts the send by that trait.
func (s *Set) CountsBy(by By, send Send) bool {
	return slices.ContainsFunc(s.rules, func(r Rule) bool { return r.By == by && r.keyOf(send) != "" })
}

// check is what every call about a mailbox checks first. MailboxRule is for every send, so
// one without a mailbox is not let pass it.
func (s *Set) check(doing, mailbox string) error {
	if s == nil || s.mailbox == nil {
		return throttle.Unchanged(fmt.Errorf("%s: the Set has no rules, as New did not make it", doing))
	}
	if err := throttle.CheckKey(mailbox); err != nil {
		return fmt.Errorf("%s: the mailbox: %w", doing, err)
	}
	return nil
}

// Take asks every rule that applies, and charges them if all say yes. A send without a
// mailbox is throttle.ErrKey. After an error the Decision says one thing: whether anything is
// Owed. If not, the error is throttle.ErrUnchanged.
//
// The id must be a new one. Unlike that of one limiter, a Take is not repeated under the same
// id: the second may be refused because of the first. Where the answer was an error, or did
// not reach who asked, Release the id and take again with a new one.
func (s *Set) Take(ctx context.Context, send Send, id throttle.ID) (Decision, error) {
	if err := s.check("take", send.Mailbox); err != nil {
		return Decision{}, err
	}
	round := s.applying(send)
	if !alone(round) {
		if err := s.look(ctx, round); err != nil {
			return Decision{}, throttle.Unchanged(err)
		}
		if d := decide(round, id); !d.Allowed {
			return d, nil
		}
	}
	if err := s.charge(ctx, round, id); err != nil {
		if slices.ContainsFunc(round, asked.mayBeCharged) {
			return Decision{Owed: true}, throttle.Unproven(err) // the proof of one rule is none for all
		}
		return Decision{}, throttle.Unchanged(err)
	}
	owed := refused(round) && s.giveBack(ctx, round, id) != nil
	d := decide(round, id)
	if !d.Allowed {
		d.Owed, d.Mailbox = owed, s.before(round, d.Mailbox)
		return d, nil
	}
	s.foresee(ctx, round, &d)
	return d, nil
}

// alone reports whether there is one rule to ask, which then needs no looking first.
func alone(round []asked) bool {
	return len(round) == 0 || len(round) == 1 && round[0].rule.Resends == nil
}

// charge takes from a round, turn by turn, until a rule says no. One rule alone is the
// everyday case and is asked without further ado.
func (s *Set) charge(ctx context.Context, round []asked, id throttle.ID) error {
	if len(round) == 1 {
		return round[0].take(ctx, id)
	}
	for len(round) > 0 {
		now := atOnce(round)
		if err := s.each(round[:now], func(a *asked) error { return a.take(ctx, id) }); err != nil {
			return err
		}
		if refused(round[:now]) {
			return nil
		}
		if round[0].rule.Name == MailboxRule && !round[0].isFirstMail() {
			asResend(round) // another was faster, or nobody knows any more
		}
		round = round[now:]
	}
	return nil
}

// foresee asks about the mail after a mailbox's first, which is a resend. The first is
// charged, so a rule that cannot be asked is left out.
func (s *Set) foresee(ctx context.Context, round []asked, d *Decision) {
	if d.Mailbox.Sent() == 0 {
		return
	}
	var lanes []asked
	for i := range round {
		if a := &round[i]; a.rule.Resends != nil && !a.rule.Shadow && !a.resend {
			lanes = append(lanes, asked{rule: a.rule, key: a.key, first: a.verdict.RetryAt()})
		}
	}
	_ = s.each(lanes, func(a *asked) error {
		if v, err := a.rule.Resends.Peek(ctx, a.key); err == nil {
			a.verdict = v
		}
		return nil
	})
	again, _ := forgottenIn(&d.Mailbox, throttle.ID{}) // known, as there is a send
	for i := range lanes {
		lanes[i].waitAsFirst(again)
		d.waitFor(lanes[i].rule, &lanes[i].verdict)
	}
}

// Peek says what Take would, and charges nothing.
func (s *Set) Peek(ctx context.Context, send Send) (Decision, error) {
	if err := s.check("peek", send.Mailbox); err != nil {
		return Decision{}, err
	}
	round := s.applying(send)
	if err := s.look(ctx, round); err != nil {
		return Decision{}, throttle.Unchanged(err)
	}
	return decide(round, throttle.ID{}), nil
}

// look asks a round, and charges nobody.
func (s *Set) look(ctx context.Context, round []asked) error {
	if err := s.each(round, func(a *asked) error { return a.peek(ctx, a.rule.Limiter) }); err != nil {
		return err
	}
	return s.askAsResend(ctx, round)
}

// askAsResend asks again, as about a resend, the rules that make a difference, unless
// this is the mailbox's first mail. Of one that MailboxRule leaves alone nobody knows, and
// what is kept for those who sign up is not for it.
func (s *Set) askAsResend(ctx context.Context, round []asked) error {
	for i := range round {
		if a := &round[i]; a.rule.Name == MailboxRule && a.isFirstMail() {
			return nil
		}
	}
	asResend(round)
	return s.each(round, func(a *asked) error {
		if !a.resend {
			return nil
		}
		return a.peek(ctx, a.limiter)
	})
}

// asResend lets rules that make a difference decide as about a resend.
func asResend(round []asked) {
	for i := range round {
		if a := &round[i]; a.rule.Resends != nil && !a.resend {
			a.limiter, a.resend, a.first = a.rule.Resends, true, a.verdict.RetryAt()
		}
	}
}

// Release gives back what Take charged for the send under this id, because the mail
// certainly never left.
func (s *Set) Release(ctx context.Context, send Send, id throttle.ID) error {
	if err := s.check("release", send.Mailbox); err != nil {
		return err
	}
	return s.each(s.applying(send), func(a *asked) error {
		_, err := a.rule.Limiter.Release(ctx, a.key, id)
		return a.wrap(err)
	})
}

// before is what the mailbox rule said before it was charged in vain.
func (s *Set) before(round []asked, after throttle.Verdict) throttle.Verdict {
	for i := range round {
		if a := &round[i]; a.rule.Name == MailboxRule && a.verdict.Allowed {
			return a.looked
		}
	}
	return after
}

// giveBack releases what was charged in a round that was refused after all. Where it was a queue
// that refused, those that were not charged are looked at meanwhile: whoever was faster in one may
// have filled the next as well, and the longest wait is told. A queue that was charged is not
// looked at: where others came in behind, its wait can be longer than what is told.
func (s *Set) giveBack(ctx context.Context, round []asked, id throttle.ID) error {
	full := slices.ContainsFunc(round, func(a asked) bool { return a.rule.turn == queued && !a.verdict.Allowed })
	return s.each(round, func(a *asked) error {
		switch {
		case a.mayBeCharged():
			if _, err := a.rule.Limiter.Release(ctx, a.key, id); err != nil && !a.rule.Shadow {
				return err
			}
		case full && a.rule.turn == queued && a.verdict.Allowed: // a no stays one
			a.lookAgain(ctx)
		}
		return nil
	})
}

// Reset forgets the mailbox in every rule that counts by it, also where another fails,
// and reports how many sends the mailbox rule forgot.
func (s *Set) Reset(ctx context.Context, mailbox string) (cleared int, err error) {
	if err := s.check("reset", mailbox); err != nil {
		return 0, err
	}
	for i := range s.rules {
		r := &s.rules[i]
		if r.By != ByMailbox {
			continue
		}
		n, failed := r.Limiter.Reset(ctx, mailbox)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("rule %s: %w", r.Name, failed))
		}
		if r.Name == MailboxRule {
			cleared = n
		}
	}
	return cleared, err
}
