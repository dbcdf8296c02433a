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
		ctx, cancel := momentAfter(ctx)
		defer cancel()
		s.main.Handled(ctx)
	}
	return err
}

// ShutdownOps ends the listener of operations, after all else, so that a shutdown can be watched. Only requests for
// metrics can be cut off.
func (s *Server) ShutdownOps(ctx context.Context) {
	ctx, cancel := momentAfter(ctx)
	defer cancel()
	_ = s.ops.Drain(ctx)
}

// momentAfter returns a context of a second, although ctx may have ended: the stores close afterwards.
func momentAfter(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), time.Second)
}
