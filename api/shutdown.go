package api

import (
	"context"
	"time"
)

// handingOver is how long a mail may take behind the last turn that a Shutdown waits for.
const handingOver = 5 * time.Second

// Shutdown ends the serving without losing a request. At once /readyz says 503 and
// every answer ends its connection; after DrainDelay no new connections are taken, and
// what is under way is finished. A connection that is silent holds nothing up, and a
// request that is still arriving has half of the time that ctx leaves, and ReadTimeout at
// most. A send that waits for its turn does so, unless that comes too late to hand over a mail
// before the end of ctx: it is answered at once then. When ctx ends first, the rest is cut off,
// with a moment to give back what never left, and ctx's error returned. Otherwise nothing is left
// running. However much time ctx leaves, giving back takes a few seconds of it at most, or
// StoreTimeout: where a history hangs, the log says what stays taken.
func (s *Server) Shutdown(ctx context.Context) error {
	s.draining.Store(true)
	defer s.end()
	pause(ctx, s.with.DrainDelay)
	if end, bounded := ctx.Deadline(); bounded {
		s.delivery.Drain(end.Add(-min(handingOver, time.Until(end)/2)))
	}
	s.closing()
	err := s.drain(ctx, s.main)
	if err != nil {
		s.end()
		s.main.door.cut()
		inAMoment(ctx, s.handled)
	}
	s.delivery.Close(ctx)
	if s.ops != nil { // last, so that it can be watched to the end
		inAMoment(ctx, func(ctx context.Context) {
			if s.drain(ctx, s.ops) != nil {
				s.ops.door.cut()
			}
		})
	}
	return err
}

const moment = time.Second

// inAMoment does what has to be done although ctx may be over: the stores close after it.
func inAMoment(ctx context.Context, do func(context.Context)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), moment)
	defer cancel()
	do(ctx)
}

// handled waits until no request is worked on any more, or ctx ends.
func (s *Server) handled(ctx context.Context) {
	for s.main.app.Server().GetCurrentConcurrency() > 0 && ctx.Err() == nil {
		pause(ctx, quiet/20)
	}
}

// quiet is how long kept connections may still bring a request once the listener is
// closed, so that a busy client learns from its answer that it is the last one. It is
// the client that would lose a request sent into a closing connection.
const quiet = 100 * time.Millisecond

func (s *Server) drain(ctx context.Context, e *endpoint) error {
	if err := e.door.Close(); err != nil {
		return err
	}
	if e.door.count() > 0 {
		pause(ctx, quiet)
	}
	e.door.dismiss(s.lastArrival(ctx))
	return e.app.Server().ShutdownWithContext(ctx)
}

// lastArrival is until when a request that has begun to arrive is waited for: the middle of
// the time that ctx leaves, and no longer than one may take; the zero Time if it leaves all.
func (s *Server) lastArrival(ctx context.Context) time.Time {
	end, ok := ctx.Deadline()
	if !ok {
		return time.Time{}
	}
	return time.Now().Add(min(time.Until(end)/2, s.with.ReadTimeout))
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
