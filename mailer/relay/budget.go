package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// budget is the time that a send may take as a whole, with all its waits and relays.
type budget struct {
	ctx      context.Context
	until    time.Time
	begin    time.Time     // when the text must be on its way
	lastCall time.Time     // after it nothing is begun
	whole    time.Duration // Options.Deadline
}

// usefulTime is ample for connecting to a distant relay and handing it an email.
const usefulTime = time.Second

// newBudget starts the budget of a send, which ends with either context or when its time is up.
// Nothing is begun with less than a second, or a tenth of the whole, left. The caller calls release
// at the end.
func newBudget(ctx, life context.Context, whole time.Duration, by time.Time) (b budget, release func()) {
	now := time.Now()
	ctx, cancel := context.WithDeadline(ctx, now.Add(whole))
	b = budget{ctx: ctx, whole: whole}
	b.until, _ = ctx.Deadline()
	b.begin = b.until
	if !by.IsZero() && by.Before(b.until) {
		b.begin = by
	}
	b.lastCall = b.begin.Add(-max(0, min(usefulTime, b.begin.Sub(now)/10)))
	stop := context.AfterFunc(life, cancel)
	return b, func() {
		stop()
		cancel()
	}
}

func (b budget) tooLate() bool { return b.ctx.Err() != nil || time.Now().After(b.lastCall) }

// errOutOfTime is the cause where the send's own time ended, not the relay's to answer.
var errOutOfTime = fmt.Errorf("the send's deadline ended: %w", context.DeadlineExceeded)

// cause words the error that ended a wait for the relay since asked, without the addresses
// that package net puts into it.
func (b budget) cause(asked time.Time, err error) error {
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case b.ctx.Err() == context.Canceled:
		return context.Canceled
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		if b.cutShort(asked, time.Now()) {
			return errOutOfTime
		}
		return errTimeout
	case errors.As(err, &op) && op.Err != nil:
		return op.Err
	case errors.As(err, &certificate): // whose text has the names in the certificate
		return errors.New(oneLine(err.Error()))
	}
	return err
}

// cutShort reports whether the send's time ended before the relay, asked at that moment,
// had a fair chance to answer. Silence for half of the time that a send may take is held
// against a relay.
func (b budget) cutShort(asked, now time.Time) bool {
	return !now.Before(b.begin) && now.Sub(asked) < b.whole/2
}
