package api

import (
	"context"
	"errors"

	"github.com/mailgate/mailgate/idempotency"
)

// handed sets the marks' callers apart: no name of a key has a blank.
const handed = "handed over by "

// errHanded is why an attempt sends no mail: nobody knows whether it would be the second.
var errHanded = errors.New("another attempt has handed the mail over")

// handOver puts the mark that the mail may leave from now on. One that is there already
// was put by another attempt, which has not come to its answer.
func (s *Server) handOver(ctx context.Context, a *attempt) error {
	if a == nil || !a.mark.Token.IsZero() {
		return nil
	}
	name := idempotency.Name{Caller: handed + a.lease.Name.Caller, Key: a.lease.Name.Key}
	outcome, err := s.with.Repeats.HandedOver.Begin(ctx, name, a.lease.Body)
	if err != nil {
		a.mark = outcome.Lease // to be taken back: it may have been put unheard
		return notSent{err}
	}
	if outcome.State != idempotency.Started {
		return a.handed()
	}
	a.mark = outcome.Lease
	switch {
	case !outcome.Degraded || a.apart:
		return nil
	case a.own == nil:
		return notSent{errUnseen}
	}
	return s.show(ctx, a)
}

// handed is the end of an attempt that has found the mark of another.
func (a *attempt) handed() error {
	a.theirs, a.mayHaveLeft = true, true
	return &problem{kind: deliveryUnknown, cause: errHanded}
}

// marking is how often a mark is put that the others do not see, before there is no mail.
const marking = 3

// show has the others see a mark that they did not. Who does not see it may take up the
// charge, and send a mail of its own on that. So it is put once more, for them all; and if
// they still cannot be told, this server owns the charge as it does all that it made alone,
// and tells of both when they can be. If they are there for the charge and not for the mark,
// all is tried anew.
//
// So a retry elsewhere is a second mail of the key only where this server is killed, or sleeps
// through its lease, before it could tell of the mark. Both mails are counted when it wakes, or
// comes back with its disk; one is not where it does not come back, or was killed in the
// milliseconds between telling of the charge and of the mark.
func (s *Server) show(ctx context.Context, a *attempt) error {
	for range marking {
		outcome, err := s.with.Repeats.HandedOver.BeginAs(ctx, a.mark)
		switch {
		case err != nil:
			return notSent{err}
		case outcome.State != idempotency.Started:
			return a.handed()
		case !outcome.Degraded:
			return nil
		}
		if alone, err := a.own(ctx); err != nil {
			return notSent{err}
		} else if alone {
			return nil
		}
	}
	return notSent{errUnseen}
}
