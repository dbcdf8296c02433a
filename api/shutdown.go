package api

import (
	"context"
	"time"
)

// handingOver is how long a mail may take after the last position in a queue that Shutdown waits
// for.
const handingOver = 5 * time.Second

// Shutdown ends the serving without losing a request. At once /readyz is 503 and every answer
// ends its connection; after DrainDelay no new connections are accepted, idle ones are closed, and
// requests in progress are finished. A request that is still arriving has until readTimeout. A send
// that waits in a queue does so, unless its position comes too late to hand over a mail before the
// end of ctx: it is answered at once then. When ctx ends first, the rest is cut off, with a moment
// to refund what never left, and ctx's error is returned. However much time ctx leaves, giving
// back takes a few seconds of it at most, or StoreTimeout: where a history hangs, the log says what
// stays charged.
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
	// Operations come last, so that it can be watched to the end. It can cut off requests for metrics only.
	inAMoment(ctx, func(ctx context.Context) { _ = s.ops.drain(ctx) })
	return err
}

const moment = time.Second

// inAMoment does what has to be done although ctx may have ended: the stores close after it.
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

// quiet is how long kept connections may still bring a request once the listener is closed, so
// that a busy client learns from its answer that it is the last one: a request sent into a
// closing connection would be lost.
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
