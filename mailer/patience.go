package mailer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/mailgate/mailgate/mailer/oauth"
)

// patience is how long a send may go on, whatever it is doing.
type patience struct {
	ctx   context.Context
	until time.Time
	whole time.Duration // Options.Deadline
	least time.Duration // with less than this left, nothing is begun
	line  time.Time     // when to leave a relay's line; the last call if zero
}

// usefulTime is ample for a distant relay to be connected to and to take a
// mail.
const usefulTime = time.Second

// newPatience is that of a send that comes now. How little time is too little
// goes by what it came with: a caller in a hurry knows why, and has not lost
// his time in a line.
func newPatience(ctx context.Context, now time.Time, whole time.Duration) patience {
	p := patience{ctx: ctx, until: now.Add(whole), whole: whole}
	if own, ok := ctx.Deadline(); ok && own.Before(p.until) {
		p.until = own
	}
	p.least = max(0, min(usefulTime, p.until.Sub(now)/10))
	return p
}

// lastCall is when it becomes too late to begin anything.
func (p patience) lastCall() time.Time { return p.until.Add(-p.least) }

// leavesLine is until when it stands in a relay's line.
func (p patience) leavesLine() time.Time {
	if p.line.IsZero() {
		return p.lastCall()
	}
	return p.line
}

// leftLine says whether a relay's line was left early, for those to ask after it.
func (p patience) leftLine(err error) bool {
	return errors.Is(err, ErrBusy) && !p.line.IsZero() && !time.Now().Before(p.line)
}

// tooLate says whether nothing more is to be begun.
func (p patience) tooLate() bool {
	return p.ctx.Err() != nil || time.Now().After(p.lastCall())
}

// arm gives what follows on the socket this much time, or what is left of the
// whole. It must be called before each wait; an error means time is up.
func (p patience) arm(socket net.Conn, most time.Duration) error {
	deadline := time.Now().Add(most)
	if p.until.Before(deadline) {
		deadline = p.until
	}
	if err := socket.SetDeadline(deadline); err != nil {
		return err
	}
	// Looked at after the deadline is set: a cancellation from here on finds
	// the deadline in place and overrides it (see interruptible).
	return p.ctx.Err()
}

var (
	errTimeout = errors.New("no answer in time")
	// errOutOfTime is the cause where the mail's own time ended, and not the
	// relay's to answer: it came to the relay late, or in a great hurry.
	errOutOfTime = fmt.Errorf("the mail's own time was up: %w", context.DeadlineExceeded)
)

// cause words the error that ended a wait for the relay, without the addresses
// and file descriptors that package net puts into it, and says whose time it
// was that ended.
func (p patience) cause(asked time.Time, err error) error {
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	var refusal *oauth.Refusal
	switch {
	case p.ctx.Err() == context.Canceled:
		return context.Canceled
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		if p.cutShort(asked, time.Now()) {
			return errOutOfTime
		}
		return errTimeout
	case errors.As(err, &op) && op.Err != nil:
		return op.Err
	case errors.As(err, &certificate), errors.As(err, &refusal): // in it are the names that the certificate has, or a server's words
		return errors.New(oneLine(err.Error()))
	}
	return err
}

// cutShort says whether the mail's time ended before the relay, asked at that
// moment, had a fair chance to answer. One that is silent for half of all the
// time a send may take had it: where that is less than a step's own timeout,
// no other silence would ever be held against a relay.
func (p patience) cutShort(asked, now time.Time) bool {
	return !now.Before(p.until) && now.Sub(asked) < p.whole/2
}
