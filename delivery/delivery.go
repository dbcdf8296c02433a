package delivery

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mailgate/mailgate/internal/idempotency"
	"github.com/mailgate/mailgate/internal/notme"
	"github.com/mailgate/mailgate/internal/verify"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/proof"
	"github.com/mailgate/mailgate/suppression"
	"github.com/mailgate/mailgate/throttle"
)

// LeaseRest is how much longer than a send's deadline the lease of its key must be, so that an
// attempt can refund its charge or store its answer.
const LeaseRest = 15 * time.Second

// Options are what a Service works with.
type Options struct {
	Relay Relay
	Codes *verify.Codes
	// Requests keeps the answers to sends with a key. Its lease is a send's deadline and
	// LeaseRest, or longer.
	Requests *idempotency.Requests
	// Suppressions are the recipients who get no email. Passes limits how often a critical one reaches an
	// address that bounced; it keeps ids.
	Suppressions *suppression.List
	Passes       *throttle.Limiter
	Proofs       *proof.Proofs // are in the emails
	NotMe        *notme.Links  // in emails whose template has one
	// StoreTimeout bounds each try to refund a charge or to store an answer.
	StoreTimeout time.Duration
	Now          func() int64 // milliseconds since 1970
	Log          *slog.Logger
	Metrics      Metrics
}

// Service sends emails and checks codes. It may be used by any number of goroutines.
type Service struct {
	o       Options
	refunds *refunds
	live    atomic.Pointer[Live]
	past    past

	drain    sync.Once
	draining chan struct{} // closed by Drain
	last     time.Time     // the last position in a queue that is waited for, after Drain
}

// New returns a Service. It needs all options, and Reload before a send.
func New(o Options) *Service {
	return &Service{o: o, refunds: newRefunds(o), draining: make(chan struct{})}
}

// handingOver is the time that Drain leaves the last queued send to hand over its email.
const handingOver = 5 * time.Second

// Drain ends the wait of sends whose position in a queue comes too late to hand over their emails before ctx ends, so that
// another server can take them on.
func (s *Service) Drain(ctx context.Context) {
	end, bounded := ctx.Deadline()
	if !bounded {
		return
	}
	s.drain.Do(func() {
		s.last = end.Add(-min(handingOver, time.Until(end)/2))
		close(s.draining)
	})
}

// Close tries the pending refunds once more, until ctx ends or a few seconds have passed, and logs
// what stays charged. Call it after the last send.
func (s *Service) Close(ctx context.Context) { s.refunds.close(ctx) }

// issued has the form of a code that is issued.
const issued = "000000"

// Check returns what is wrong with the email of a send, one error for each field. The recipient may be
// unknown.
func (s *Service) Check(q Send) []*message.Error {
	mail := q.Mail
	if mail.Code == "" && !q.Linked {
		mail.Code, mail.ExpiresInMS = issued, s.o.Codes.Lifetime()
	}
	return q.Composer.Check(mail)
}

// recipient returns the recipient that a code proves: this address, and no alias of its mailbox.
func recipient(to address.Address, purpose string) verify.Recipient {
	return verify.Recipient{Mailbox: to.Key(), Address: to.String(), Purpose: purpose}
}

// wait waits until the positions of all recipients in queues have come. If the last comes after the end of ctx, or of a
// drain, none is waited for.
func (a *Attempt) wait(ctx context.Context) error {
	c := slices.MaxFunc(a.charges, func(one, other *charge) int { return one.ready.Compare(other.ready) })
	length, late := time.Until(c.ready), tooLate{c.decision.Delay}
	if length <= 0 {
		return nil
	}
	if end, bounded := ctx.Deadline(); bounded && !end.After(c.ready) {
		return late
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	for draining := a.service.draining; ; draining = nil {
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return late
		case <-draining:
			if !c.ready.Before(a.service.last) {
				return late
			}
		}
	}
}

// tooLate is ErrQueue for a send that would have to wait that many milliseconds.
type tooLate struct{ delay int64 }

func (tooLate) Error() string { return ErrQueue.Error() }
func (tooLate) Unwrap() error { return ErrQueue }
