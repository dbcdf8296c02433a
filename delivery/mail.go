package delivery

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/internal/recovered"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// Mail is an email that another program has written. Its recipients are charged one by one, and the
// relay takes it for all of them or for none. It is used by one goroutine, and ends with HandOver or
// Abandon.
type Mail struct {
	service   *Service
	ctx       context.Context
	durable   func(ctx context.Context) error
	requestID string
	charges   []*charge
	ended     bool // by HandOver or Abandon
	left      bool // it may have left
	receipt   relay.Receipt
}

// Recipient is one who is charged for a Mail.
type Recipient struct {
	address.Address
	Result
}

// Recipients are those who were charged, in this order.
func (m *Mail) Recipients() []Recipient {
	all := make([]Recipient, len(m.charges))
	for i, c := range m.charges {
		all[i] = Recipient{c.to, Result{ID: c.id, Decision: c.decision}}
	}
	return all
}

// Mail begins an email whose recipients are charged within ctx. The id of the request is for the log.
func (s *Service) Mail(ctx context.Context, requestID string) *Mail {
	ctx, durable := cache.Batch(ctx)
	return &Mail{service: s, ctx: ctx, durable: durable, requestID: requestID}
}

// Charge charges one more recipient. After an error, which is an *Error, it is not charged.
func (m *Mail) Charge(set *rules.Set, to address.Address, traits rules.Send) (Result, error) {
	c := &charge{to: to, rules: set, traits: traits, id: throttle.NewID()}
	if err := m.service.take(m.ctx, c); err != nil {
		if c.owes() { // the store failed just now
			m.service.refunds.later(m.service.refund(c, err.Kind))
		}
		return Result{}, err
	}
	m.charges = append(m.charges, c)
	return Result{ID: c.id, Decision: c.decision}, nil
}

// Claim asks whether the email was handed over to a charged recipient before, under a name that a repeat has too. It
// returns the answer that Finish kept, or nil if it is to be sent, or an *Error.
func (m *Mail) Claim(requests *idempotency.Requests, to address.Address, name idempotency.Name) (*idempotency.Answer, error) {
	k, o, err := begin(m.ctx, requests, m.requestID, name, idempotency.Fingerprint{})
	switch {
	case err != nil:
		return nil, err
	case o.State == idempotency.Replay:
		return &o.Answer, nil
	case o.State == idempotency.Unknown:
		return nil, &Error{Kind: Unknown, Err: errUnknown}
	}
	m.charges[slices.IndexFunc(m.charges, func(c *charge) bool { return c.to == to })].claim = k
	return nil, nil
}

// Withdraw refunds one recipient, who does not get the email.
func (m *Mail) Withdraw(to address.Address) {
	if i := slices.IndexFunc(m.charges, func(c *charge) bool { return c.to == to }); i >= 0 {
		one := m.charges[i]
		m.charges = slices.Delete(m.charges, i, i+1)
		m.service.refunds.now(m.service.refund(one, Unavailable))
	}
}

// HandOver gives the text to a relay. It must be on its way by then, and ctx ends the wait for the
// relay's answer. The error is an *Error; recipients who are not charged for it are refunded.
func (m *Mail) HandOver(ctx context.Context, e relay.Envelope, text []byte) error {
	err := m.handOver(ctx, e, text)
	if err == nil {
		for _, c := range m.charges {
			c.final = true
		}
		m.ended = true
		return nil
	}
	failed := failure(err)
	for _, c := range m.charges {
		c.final = c.stays(failed, m.left)
	}
	m.refund(failed.Kind)
	return failed
}

func (m *Mail) handOver(ctx context.Context, e relay.Envelope, text []byte) (err error) {
	defer recovered.Into(&err)
	waiting, cancel := context.WithDeadline(ctx, e.By)
	defer cancel()
	for _, c := range m.charges {
		e.To = append(e.To, c.to)
		if err := m.service.wait(waiting, time.Until(c.ready).Milliseconds()); err != nil {
			return err
		}
	}
	if err := m.durable(waiting); err != nil {
		return throttle.Unavailable("keeping what was charged", err)
	}
	m.receipt, err = m.service.handOver(ctx, e, text, func() error {
		ctx, durable := cache.Batch(ctx)
		for _, c := range m.charges {
			if err := c.claim.handOver(ctx); err != nil {
				return err
			}
		}
		if err := durable(ctx); err != nil {
			return throttle.Unavailable("marking an email as sent", err)
		}
		m.left = true
		return nil
	})
	return err
}

// Stays reports, after HandOver, whether a recipient stays charged: the email left, may have, or was refused
// for good.
func (m *Mail) Stays() bool {
	return slices.ContainsFunc(m.charges, func(c *charge) bool { return c.final })
}

// Finish keeps, after HandOver, the answer to repeats for the recipients who stay charged.
func (m *Mail) Finish(answer idempotency.Answer) {
	var all sync.WaitGroup
	for _, c := range m.charges {
		if c.final && c.claim != nil {
			all.Go(func() { m.service.refunds.now(&refund{claim: c.claim, answer: &answer}) })
		}
	}
	all.Wait()
}

// Receipt is what the relay said when it accepted the email.
func (m *Mail) Receipt() relay.Receipt { return m.receipt }

// Abandon refunds the recipients of an email that is not to leave, and frees their names. After HandOver it does nothing.
func (m *Mail) Abandon() {
	if !m.ended {
		m.refund(Unavailable)
	}
}

// refund refunds, at once as each may have to wait for a store that does not answer, the charges that are not final.
func (m *Mail) refund(why Kind) {
	m.ended = true
	var all sync.WaitGroup
	for _, c := range m.charges {
		if !c.final {
			all.Go(func() { m.service.refunds.now(m.service.refund(c, why)) })
		}
	}
	all.Wait()
}
