package api

import (
	"context"
	"time"
)

// handingOver is the time that Shutdown leaves the last queued send to hand over its email.
const handingOver = 5 * time.Second

// Shutdown stops serving without losing a request. At once, /readyz answers 503 and every answer
// ends its connection. After DrainDelay no new connections are accepted, idle ones are closed, and
// requests in progress are finished; one that is still arriving has until readTimeout. A queued
// send keeps waiting, unless it would come too late to hand over its email before ctx ends: it is
// answered at once. When ctx ends first, the rest is cut off, with a moment for refunds, and ctx's
// error is returned. Refunds take a few seconds or StoreTimeout at most; the log says what stays
// charged.
func (s *Server) Shutdown(ctx context.Context) error {
	s.draining.Store(true)
	defer s.end()
	pause(ctx, s.with.DrainDelay)
	if end, bounded := ctx.Deadline(); bounded {
		s.delivery.Drain(end.Add(-min(handingOver, time.Until(end)/2)))
	}
	s.closing()
	err := s.main.drain(ctx)
	if err != nil {
		s.end()
		inAMoment(ctx, s.main.handled)
	}
	s.delivery.Close(ctx)
	// The listener of operations comes last, so that a shutdown can be watched. Only requests for
	// metrics can be cut off.
	inAMoment(ctx, func(ctx context.Context) { _ = s.ops.drain(ctx) })
	return err
}

const moment = time.Second

// inAMoment gives do a moment although ctx may have ended: the stores close afterwards.
func inAMoment(ctx context.Context, do func(context.Context)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), moment)
	defer cancel()
	do(ctx)
}

// handled waits until no request is in progress, or ctx ends.
func (e *endpoint) handled(ctx context.Context) {
	for e.app.Server().GetCurrentConcurrency() > 0 && ctx.Err() == nil {
		pause(ctx, quiet/20)
	}
}

// quiet is how long kept connections may still bring a request after the listener is closed. Its
// answer tells the client that the connection ends; a request sent into a closing one would be lost.
const quiet = 100 * time.Millisecond

func (e *endpoint) drain(ctx context.Context) error {
	if err := e.close(); err != nil {
		return err
	}
	if e.connections() > 0 {
		pause(ctx, quiet)
	}
	return e.app.Server().ShutdownWithContext(ctx)
}

func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
