package api

import (
	"context"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/api/gate"
	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/throttle"
)

// bounded lets no caller use a route more often than its limiter admits; it is nil where
// there is none. The headers of its answers are about a mailbox, so of lookups and countdowns
// only a refusal speaks.
func (s *Server) bounded(r *route) (fiber.Handler, error) {
	whom := ""
	visitor := func(c *fiber.Ctx) string { return "visitor " + network.Visitor(s.client(c.Context())) }
	o := gate.Options{Quiet: true, Key: visitor}
	switch r.bound {
	case byCaller:
		o.Limiter, o.Name, whom = s.with.Lookups, "lookups", "this caller's lookups"
		// A request without a key that opens the route is counted by its address, so that
		// it cannot use up what belongs to a caller. Keys of the two kinds may have one name,
		// and an operator must get in when an application has used up its own.
		whose := map[access]string{applications: "application ", operators: "operator "}[r.keys]
		o.Key = func(c *fiber.Ctx) string {
			if name := s.callerOf(r, c); name != "" {
				return whose + name
			}
			return visitor(c)
		}
	case byVisitor:
		o.Limiter, o.Name, whom = s.with.Countdowns, "countdowns", "this address's countdowns"
	}
	if o.Limiter == nil {
		return nil, nil
	}
	o.Refuse = func(c *fiber.Ctx, v throttle.Verdict) error {
		ch := &charge{quota: quotaOfOne(o.Name, "", v), whom: whom, then: "The next one is answered"}
		s.refuseEarlier(r, c, denied(ch))
		return nil
	}
	o.Failed = func(c *fiber.Ctx, err error) error {
		s.refuseEarlier(r, c, problemOf(err))
		return nil
	}
	handler, err := gate.New(o)
	if err != nil {
		return nil, err
	}
	return s.caught(r, handler), nil
}

// callerOf is the name of the key that a request shows and that opens the route.
func (s *Server) callerOf(r *route, c *fiber.Ctx) string {
	name, err := s.admit(r.keys, &c.Context().Request.Header)
	if err != nil {
		return ""
	}
	return name
}

// refuseEarlier answers a request that does not get as far as its route's work.
func (s *Server) refuseEarlier(r *route, c *fiber.Ctx, p *problem) {
	name := s.callerOf(r, c)
	s.serve(&route{name: r.name, anywhere: r.anywhere, step: func(_ context.Context, call *call, _ *incoming, _ *answer) error {
		call.key = name
		return p
	}}, "", c.Context())
}

// caught makes an answer of a panic before the route's work, where nothing else would.
func (s *Server) caught(r *route, next fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		defer func() {
			if value := recover(); value != nil {
				s.refuseEarlier(r, c, problemOf(panicked(value)))
			}
		}()
		return next(c)
	}
}
