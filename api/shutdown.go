package api

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mailgate/mailgate/api/front"
)

// handingOver is the time that Shutdown leaves the last queued send to hand over its email.
const handingOver = 5 * time.Second

// Shutdown stops serving without losing a request. At once, /readyz answers 503 and every answer
// ends its connection. After DrainDelay no new connections are accepted, idle ones are closed, and
// requests in progress are finished; one that is still arriving has five seconds. A queued
// send keeps waiting, unless it would come too late to hand over its email before ctx ends: it is
// answered at once. When ctx ends first, the rest is cut off, with a moment for refunds, and ctx's
// error is returned. Refunds take a few seconds or StoreTimeout at most; the log says what stays
// charged.
func (s *Server) Shutdown(ctx context.Context) error {
	s.draining.Store(true)
	defer s.end()
	front.Pause(ctx, s.with.DrainDelay)
	if end, bounded := ctx.Deadline(); bounded {
		s.delivery.Drain(end.Add(-min(handingOver, time.Until(end)/2)))
	}
	s.closing()
	err := s.drain(ctx)
	if err != nil {
		s.end()
		inAMoment(ctx, s.main.Handled)
	}
	s.delivery.Close(ctx)
	// The listener of operations comes last, so that a shutdown can be watched. Only requests for
	// metrics can be cut off.
	inAMoment(ctx, func(ctx context.Context) { _ = s.ops.Drain(ctx) })
	return err
}

// drain drains all doors at the same time.
func (s *Server) drain(ctx context.Context) error {
	errs := make([]error, len(s.others))
	var all sync.WaitGroup
	for i, drain := range s.others {
		all.Go(func() { errs[i] = drain(ctx) })
	}
	err := s.main.Drain(ctx)
	all.Wait()
	return errors.Join(append(errs, err)...)
}

const moment = time.Second

// inAMoment gives do a moment although ctx may have ended: the stores close afterwards.
func inAMoment(ctx context.Context, do func(context.Context)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), moment)
	defer cancel()
	do(ctx)
}
