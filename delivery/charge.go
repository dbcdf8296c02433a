package delivery

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/mailgate/mailgate/internal/recovered"
	"github.com/mailgate/mailgate/internal/trace"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// charge is what the rules are charged for one recipient of an email, until its outcome is known.
type charge struct {
	Send
	id       throttle.ID
	decision rules.Decision
	owed     []rules.Charge // to be refunded if the email does not leave
	ready    time.Time      // when its position in a queue comes
	code     string         // issued for it
	noted    bool           // there may be a note of what a right code returns
	claim    *claim         // nil: none
	passed   bool           // a critical email to an address that bounced did so, or may have
	final    bool           // stays, as the email left or may have
}

// critical reports whether the email reaches an address that bounced, once a day.
func (c *charge) critical() bool { return c.Composer == nil || c.Composer.Critical(c.Mail.Template) }

// owes reports whether something may be charged.
func (c *charge) owes() bool { return len(c.owed) > 0 || c.passed }

// take asks the rules and charges them, unless the recipient is suppressed. With an error, what is owed may
// be charged all the same.
func (a *Attempt) take(c *charge) (err error) {
	s := a.service
	if a.previous != (throttle.ID{}) {
		if c.owed, err = c.Rules.Release(a.ctx, c.Rules.ExactCharges(c.Traits, a.previous)); err != nil {
			return err
		}
		if c.critical() {
			if err := s.takeBack(a.ctx, c.Mail.To, a.previous); err != nil {
				return err
			}
		}
	}
	if e := s.checkSuppressed(a.ctx, c); e != nil {
		return e
	}
	began, d := time.Now(), &c.decision
	ctx, span := trace.Start(a.ctx, "decision")
	defer func() {
		if value := recover(); value != nil { // it is not known which of them are charged
			c.owed, err = c.Rules.ExactCharges(c.Traits, c.id), recovered.From(value)
		}
		if span.On() {
			var cases []string
			for _, m := range c.Rules.Matches(c.Traits) {
				cases = append(cases, m.String())
			}
			span.Set("cases", strings.Join(cases, "; "))
		}
		span.Set("rule", d.Rule)
		span.Set("limit", d.Verdict.Limit)
		word := "allowed"
		if err != nil {
			word = outcome(err)
		}
		span.End(word)
		s.o.Metrics.Decisions.Observe(time.Since(began).Seconds())
	}()
	*d, err = c.Rules.Take(ctx, c.Traits, c.id)
	if a.degraded {
		d.Degraded, d.Verdict.Degraded = true, true
	}
	c.owed = d.Charges
	if d.Lost != nil {
		s.o.Log.Warn("quota of a rule could not be refunded", "mailbox", c.Mail.To.Hash(), "id", c.id.String(), "cause", d.Lost.Error())
	}
	switch {
	case err != nil:
		return err
	case d.Denied != "":
		return &Error{Kind: Denied, Rule: d.Denied}
	case !d.Allowed:
		return &Error{Kind: Limited, Result: Result{Decision: *d}}
	}
	s.past.add(s.o.Now(), c.Traits, false)
	c.ready = time.Now().Add(time.Duration(d.Delay) * time.Millisecond)
	return nil
}

// stays reports whether a recipient stays charged for an email that was not accepted: the relay
// refused it, or the whole email, for good, or the email may have left. An error that is not known
// proves nothing.
func (c *charge) stays(e *Error, handedOver bool) bool {
	switch e.Kind {
	case Rejected:
		refused, ok := errors.AsType[*relay.Error](e)
		return !ok || refused.To.IsZero() || refused.To == c.Mail.To
	case Unknown, Failed:
		return handedOver && !errors.Is(e, relay.ErrUnsendable) && !errors.Is(e, errTaken)
	}
	return false
}

// refund returns what is to be done for a charge whose email does not leave.
func (s *Service) refund(c *charge, why Kind) *refund {
	owed := c.owed
	if why == Deferred { // or a visitor could let the relay ask about recipients without end
		owed = slices.DeleteFunc(slices.Clone(owed), func(c rules.Charge) bool { return c.By.Has(rules.ByClientIP) })
	}
	r := &refund{id: c.id, claim: c.claim, whose: slog.String("mailbox", c.Mail.To.Hash())}
	passed := c.passed
	r.release = func(ctx context.Context) (err error) {
		if passed {
			if err := s.takeBack(ctx, c.Mail.To, c.id); err != nil {
				return err
			}
			passed = false
		}
		owed, err = s.release(ctx, r, c.Rules, owed)
		return err
	}
	if c.code != "" || c.noted {
		r.revoke = func(ctx context.Context) error {
			return s.o.Codes.Revoke(ctx, recipient(c.Mail.To, c.Purpose), c.code, c.id)
		}
	}
	return r
}

// release refunds charges. With an error it returns those that may be tried again.
func (s *Service) release(ctx context.Context, of *refund, set *rules.Set, owed []rules.Charge) (failed []rules.Charge, err error) {
	failed, err = set.Release(ctx, owed)
	if err != nil && len(failed) == 0 { // of a counter, which must not be asked twice
		s.o.Log.Warn("quota of a rule could not be refunded", of.whose, "id", of.id.String(), "cause", err.Error())
		err = nil
	}
	return failed, err
}
