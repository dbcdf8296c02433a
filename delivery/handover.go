package delivery

import (
	"context"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/recovered"
	"github.com/mailgate/mailgate/internal/trace"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/throttle"
)

// Relay opens transactions, as *relay.Relays does. After an error of Begin the email certainly never left,
// or was rejected. An error of Commit that package relay does not know counts as an email that may have left.
type Relay interface {
	Begin(ctx context.Context, e relay.Envelope) (relay.Tx, error)
}

// HandOver gives the text of another program to a relay. It must be on its way by then, and ctx ends the wait for the
// relay's answer. The error is an *Error; recipients who are not charged for it are refunded.
func (a *Attempt) HandOver(ctx context.Context, e relay.Envelope, text []byte) error {
	if failed := a.end(a.handOver(ctx, e, text)); failed != nil {
		return failed
	}
	return nil
}

func (a *Attempt) handOver(ctx context.Context, e relay.Envelope, text []byte) (err error) {
	defer recovered.Into(&err)
	waiting, cancel := context.WithDeadline(ctx, e.By)
	defer cancel()
	if err := a.wait(waiting); err != nil {
		return err
	}
	if err := a.persist(waiting); err != nil {
		return err
	}
	return a.transmit(ctx, e, text)
}

// persist waits until what was charged is durable.
func (a *Attempt) persist(ctx context.Context) error {
	if err := a.durable(ctx); err != nil {
		return throttle.Unavailable("keeping what was charged", err)
	}
	return nil
}

// transmit gives the email to a relay. It may leave once that is on record.
func (a *Attempt) transmit(ctx context.Context, e relay.Envelope, text []byte) (err error) {
	for _, c := range a.charges {
		e.To = append(e.To, c.Mail.To)
	}
	began := time.Now()
	ctx, span := trace.Start(ctx, "relay")
	defer func() {
		span.Set("relay", a.receipt.Relay)
		span.End(outcome(err))
	}()
	tx, err := a.service.o.Relay.Begin(ctx, e)
	if err == nil {
		defer tx.Abort() // does nothing after Commit
		if err := a.leaves(ctx); err != nil {
			return err
		}
		a.receipt, err = tx.Commit(text)
	}
	a.service.o.Metrics.Relays.WithLabelValues(outcome(err)).Observe(time.Since(began).Seconds())
	return err
}

// leaves records that the email may leave from now on.
func (a *Attempt) leaves(ctx context.Context) error {
	ctx, durable := cache.Batch(ctx)
	for _, c := range a.charges {
		if c.claim == nil {
			continue
		}
		c.claim.handedOver = true
		if ok, err := c.claim.requests.HandOver(ctx, c.claim.lease); err != nil {
			return err
		} else if !ok {
			return errTaken
		}
	}
	if err := durable(ctx); err != nil {
		return throttle.Unavailable("marking an email as sent", err)
	}
	a.state = handedOver
	return nil
}
