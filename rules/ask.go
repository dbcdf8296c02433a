package rules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/mailgate/mailgate/throttle"
)

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// asked is one rule in a round of questions about a send, and what it said.
type asked struct {
	rule    *Rule
	key     string
	limiter throttle.Limiter // the one that decides
	resend  bool             // it is the one for resends
	first   int64            // when it would admit a first mail
	verdict throttle.Verdict
	looked  throttle.Verdict // what it said before it was to be charged
	charged bool
	inDoubt bool  // it failed, and may have been charged
	err     error // a shadow's, which stops nothing
}

func (a asked) mayBeCharged() bool { return a.charged || a.inDoubt }

// keyOf is what the rule counts the send under, empty if it does not.
func (r *Rule) keyOf(send Send) string {
	if r.Exempt.covers(send) {
		return ""
	}
	return r.By.Key(send)
}

// applying is a round of the rules that have to do with this send.
func (s *Set) applying(send Send) []asked {
	round := make([]asked, 0, len(s.rules))
	for i := range s.rules {
		r := &s.rules[i]
		if key := r.keyOf(send); key != "" {
			round = append(round, asked{rule: r, key: key, limiter: r.Limiter})
		}
	}
	return round
}

// A turn is when a rule is charged. What can be given back goes before what cannot, and
// where a lane is for first mails the mailbox's rule says first whether this is one. A queue
// in the shadow refuses nobody, and so waits until nobody refuses.
type turn int

const (
	first turn = iota
	middle
	queued // one at a time
	last
)

func turnOf(r *Rule, lanes bool) turn {
	switch {
	case r.Name == MailboxRule && lanes:
		return first
	case r.Queues && r.Shadow:
		return last
	case r.Queues:
		return queued
	}
	return middle
}

// inTurn orders rules as they are charged: of queues the widest last. What a later one refuses
// has lost its turn in an earlier, and that is to be one that few others wait in.
func inTurn(a, b Rule) int {
	if a.turn == queued && b.turn == queued {
		return cmp.Compare(a.By.width(), b.By.width())
	}
	return cmp.Compare(a.turn, b.turn)
}

// atOnce is how many of a round, from its front, are charged together.
func atOnce(round []asked) int {
	n, now := 1, round[0].rule.turn
	for now != queued && n < len(round) && round[n].rule.turn == now {
		n++
	}
	return n
}

// waitAsFirst shortens the wait of a resend: in so many milliseconds its mailbox is a newcomer
// again, and from then on it is a first mail, and waits as that does.
func (a *asked) waitAsFirst(again int64) {
	v := &a.verdict
	if sooner := v.RetryAt() - max(v.Now+again, a.first); v.Wait > 0 && sooner > 0 {
		v.Wait = max(1, v.Wait-sooner)
	}
}

// shortenWaits has each resend of a round wait no longer than until it is a first mail.
func shortenWaits(round []asked, id throttle.ID) {
	again, known := newcomerAgain(round, id)
	for i := range round {
		if a := &round[i]; a.resend && known {
			a.waitAsFirst(again)
		}
	}
}

// newcomerAgain is in how many milliseconds the mailbox of a round is one again. The send of
// the round counts if it is admitted; what is refused is given back.
func newcomerAgain(round []asked, id throttle.ID) (again int64, known bool) {
	if !refused(round) {
		id = throttle.ID{}
	}
	for i := range round {
		if a := &round[i]; a.rule.Name == MailboxRule && a.err == nil {
			return forgottenIn(&a.verdict, id)
		}
	}
	return 0, false
}

// forgottenIn counts from the clock of who has the mailbox: another's may differ.
func forgottenIn(mailbox *throttle.Verdict, but throttle.ID) (ms int64, known bool) {
	at, known := mailbox.ForgottenAt(but)
	return at - mailbox.Now, known
}

// refused reports whether a rule that is not in the shadow said no.
func refused(round []asked) bool {
	return slices.ContainsFunc(round, func(a asked) bool { return !a.rule.Shadow && !a.verdict.Allowed })
}

// each does the same with all of a round, at once where they are remote.
func (s *Set) each(round []asked, do func(*asked) error) error {
	if !s.remote || len(round) < 2 {
		var all error
		for i := range round {
			all = errors.Join(all, do(&round[i]))
		}
		return all
	}
	errs := make([]error, len(round))
	var done sync.WaitGroup
	for i := range round {
		done.Go(func() { errs[i] = do(&round[i]) })
	}
	done.Wait()
	return errors.Join(errs...)
}

func (a *asked) peek(ctx context.Context, limiter throttle.Limiter) (err error) {
	a.verdict, err = limiter.Peek(ctx, a.key)
	a.looked = a.verdict
	return a.wrap(err)
}

// lookAgain asks for what may have changed since. A rule that cannot be asked stays as it was seen.
func (a *asked) lookAgain(ctx context.Context) {
	if v, err := a.limiter.Peek(ctx, a.key); err == nil {
		a.verdict = v
	}
}

// take charges the rule. A shadow that refuses is not charged, as nobody is.
func (a *asked) take(ctx context.Context, id throttle.ID) (err error) {
	a.verdict, err = a.limiter.Take(ctx, a.key, id)
	a.charged, a.inDoubt = a.verdict.Allowed, err != nil && !errors.Is(err, throttle.ErrUnchanged)
	return a.wrap(err)
}

// isFirstMail reports whether the mailbox's rule has nothing on record but this send. Of
// one in the shadow that failed nobody knows.
func (a *asked) isFirstMail() bool {
	own := 0
	if a.charged {
		own = 1
	}
	return a.err == nil && a.verdict.Sent() == own
}

// wrap names the rule in its error. A shadow's stops nothing, and is kept to be told
// unless it answers later.
func (a *asked) wrap(err error) error {
	if err == nil {
		a.err = nil
		return nil
	}
	err = fmt.Errorf("rule %s: %w", a.rule.Name, err)
	if a.rule.Shadow {
		a.err = err
		return nil
	}
	return err
}
