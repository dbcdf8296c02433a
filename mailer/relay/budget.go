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

// budget is the time that a send may take, whatever it is doing.
type budget struct {
	ctx      context.Context
	until    time.Time
	lastCall time.Time     // after it nothing is begun
	whole    time.Duration // Options.Deadline
}

// usefulTime is ample for connecting to a distant relay and handing it a mail.
const usefulTime = time.Second

// newBudget is for a send that comes now. With less than a second left, or a tenth of what
// it came with, nothing is begun.
func newBudget(ctx context.Context, now time.Time, whole time.Duration) budget {
	b := budget{until: now.Add(whole), whole: whole}
	if own, ok := ctx.Deadline(); ok && own.Before(b.until) {
		b.until = own
	}
	b.lastCall = b.until.Add(-max(0, min(usefulTime, b.until.Sub(now)/10)))
	return b
}

// bind makes what follows end with either context, and when the time is up. The caller calls
// release when that is done.
func (b *budget) bind(ctx, life context.Context) (release func()) {
	ctx, cancel := context.WithDeadline(ctx, b.until)
	b.ctx = ctx
	b.until, _ = ctx.Deadline()
	stop := context.AfterFunc(life, cancel)
	return func() {
		stop()
		cancel()
	}
}

func (b budget) tooLate() bool { return b.ctx.Err() != nil || time.Now().After(b.lastCall) }

// arm gives what follows on the socket this much time, or what is left of the whole. It is
// called before each wait; an error means that time is up.
func (b budget) arm(socket net.Conn, most time.Duration) error {
	deadline := time.Now().Add(most)
	if b.until.Before(deadline) {
		deadline = b.until
	}
	if err := socket.SetDeadline(deadline); err != nil {
		return err
	}
	// After the deadline is set: a later cancellation overrides it, see interrupt.
	return b.ctx.Err()
}

// interrupt makes the context end whatever the socket waits for. The returned function stops
// that and reports false if it came too late: the deadline may then be overwritten at any
// moment, and the connection must be closed.
func (b budget) interrupt(socket net.Conn) (stop func() bool) {
	return context.AfterFunc(b.ctx, func() {
		_ = socket.SetDeadline(time.Unix(1, 0)) // an error means that it is closed
	})
}

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
	return !now.Before(b.until) && now.Sub(asked) < b.whole/2
}
