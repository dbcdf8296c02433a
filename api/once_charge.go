package api

import (
	"bytes"
	"context"
	"encoding/base64"
	"log/slog"
	"slices"

	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/rules"
	"github.com/mailgate/mailgate/throttle"
)

// keyed is how many characters of a reservation follow from the key. The others are the
// attempt's own: what one gives back, and is heard of when another has sent the mail, is
// not the place of that mail. Both are long enough for the few sends of one mailbox.
const keyed = 5

// reservation is what an attempt is charged under.
func (s *Server) reservation(of idempotency.Lease) throttle.ID {
	id := s.names.reservation(of.Name)
	copy(id[keyed:], base64.RawURLEncoding.EncodeToString(of.Token[:3]))
	return id
}

// chargedBefore finds what an attempt under the same key has charged, the latest if several.
func chargedBefore(history throttle.History, key throttle.ID) (throttle.ID, bool) {
	for _, a := range slices.Backward(history) {
		if bytes.Equal(a.ID[:keyed], key[:keyed]) {
			return a.ID, true
		}
	}
	return throttle.ID{}, false
}

// reserve says under which reservation an attempt is charged: one by which others who have
// the key find the charge. But where another server may have done the send that cannot be
// asked, its mail and this one would be two, so they are counted as two.
func (s *Server) reserve(ctx context.Context, c *call, send rules.Send) error {
	a := c.attempt
	history, err := c.live.Rules.Mailbox().History(ctx, send.Mailbox)
	if err != nil {
		return err
	}
	before, found := chargedBefore(history, a.reservation)
	switch {
	case found:
		err = s.takeUp(ctx, c, send, before)
	case a.alone:
		a.apart, a.reservation = true, throttle.NewID()
	}
	a.own = func(ctx context.Context) (bool, error) {
		return own(ctx, c.live.Rules.Mailbox(), send.Mailbox, a.reservation)
	}
	if err == nil {
		c.id = a.reservation
	}
	return err
}

// own takes once more what is charged, and reports whether it did so alone. That changes
// nothing, but in an outage what a server takes it records when that is over, whatever the
// others have made of it by then.
func own(ctx context.Context, limiter throttle.Historian, mailbox string, id throttle.ID) (alone bool, err error) {
	history, err := limiter.History(ctx, mailbox)
	if err != nil {
		return false, err
	}
	var v throttle.Verdict
	if history.Find(id) < 0 { // a mailbox may be exempt, or another has taken it up
		v, err = limiter.Peek(ctx, mailbox)
	} else {
		v, err = limiter.Take(ctx, mailbox, id)
	}
	return v.Degraded, err
}

// takeUp goes on from what an earlier attempt has left, whose server was killed. Its charge,
// for a mail that was not handed over, is given back, and another is taken for this one.
func (s *Server) takeUp(ctx context.Context, c *call, send rules.Send, before throttle.ID) error {
	c.id = before
	if err := s.handOver(ctx, c.attempt); err != nil {
		return s.standingOf(ctx, c, send, err)
	}
	return c.live.Rules.Release(ctx, send, before)
}

// giveWay is the end of an attempt that was late: it has charged, and another has handed over
// the mail. What it charged goes back, with its code, and the answer is about that mail.
func (s *Server) giveWay(ctx context.Context, c *call, send rules.Send, done *sent, err error) error {
	set, own := c.live.Rules, c.id
	s.refunds.now(ctx, refund{whose: slog.String("mailbox", c.mailbox.Hash()), id: own, release: func(ctx context.Context) error {
		if err := set.Release(ctx, send, own); err != nil {
			return err
		}
		return s.takeBack(ctx, done.made)
	}})
	return s.standingOfTheirs(ctx, c, send, err)
}

// standingOfTheirs is standingOf where the charge is to be found that the other has made; not
// even its server may be there to tell.
func (s *Server) standingOfTheirs(ctx context.Context, c *call, send rules.Send, err error) error {
	c.id = throttle.ID{}
	if history, err := c.live.Rules.Mailbox().History(ctx, send.Mailbox); err == nil {
		c.id, _ = chargedBefore(history, s.reservation(c.attempt.lease))
	}
	return s.standingOf(ctx, c, send, err)
}

// standingOf adds to the answer about a mail that another attempt may have sent how the
// mailbox stands. Without that it is no answer to keep: the mark is there to find it again.
func (s *Server) standingOf(ctx context.Context, c *call, send rules.Send, err error) error {
	p := problemOf(err)
	if p.kind != deliveryUnknown {
		return p
	}
	decision, err := c.live.Rules.Peek(ctx, send)
	if err != nil {
		c.attempt.mayHaveLeft = false
		return err
	}
	p.charged = &charge{standing: s.counted(send, decision), id: c.id}
	return p
}
