package api

import (
	"context"
	"time"
)

// Drain has /readyz answer 503 and every answer end its connection from now on.
func (s *Server) Drain() { s.draining.Store(true) }

// Shutdown stops serving without losing a request: no new connections are accepted, idle ones are closed, and requests in
// progress are finished; one that is still arriving has five seconds. When ctx ends first, the rest is cut off, with a
// moment to be answered, and ctx's error is returned.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Drain()
	defer s.end()
	s.closing()
	err := s.main.Drain(ctx)
	if err != nil {
		s.end()
		inAMoment(ctx, s.main.Handled)
	}
	return err
}

// ShutdownOps ends the listener of operations, after all else, so that a shutdown can be watched. Only requests for
// metrics can be cut off.
func (s *Server) ShutdownOps(ctx context.Context) {
	inAMoment(ctx, func(ctx context.Context) { _ = s.ops.Drain(ctx) })
}

const moment = time.Second

// inAMoment gives do a moment although ctx may have ended: the stores close afterwards.
func inAMoment(ctx context.Context, do func(context.Context)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), moment)
	defer cancel()
	do(ctx)
}
