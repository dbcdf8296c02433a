package api

import (
	"context"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/throttle"
)

// bounded lets no caller use a route more often than its limiter admits; it is nil where
// there is none.
func (s *Server) bounded(r *route) fiber.Handler {
	limiter, name, whom := s.with.Lookups, "lookups", "this caller's lookups"
	switch r.bound {
	case unbounded:
		return nil
	case byVisitor:
		limiter, name, whom = s.with.Countdowns, "countdowns", "this address's countdowns"
	}
	if limiter == nil {
		return nil
	}
	return s.caught(r, func(c *fiber.Ctx) error {
		v, err := limiter.Take(c.UserContext(), s.countedBy(r, c), throttle.NewID())
		if err != nil {
			s.refuseEarlier(r, c, problemOf(err))
			return nil
		}
		if !v.Allowed {
			s.refuseEarlier(r, c, denied(&charge{quota: quotaOfOne(name, "", v), whom: whom, then: "The next one is answered"}))
			return nil
		}
		return c.Next()
	})
}

// countedBy is the caller, or the address of a request without a key that opens the route, so
// that it uses up nothing of a caller's. Keys of the two kinds may have one name.
func (s *Server) countedBy(r *route, c *fiber.Ctx) string {
	if name := s.callerOf(r, c); name != "" && r.bound == byCaller {
		return map[access]string{applications: "application ", operators: "operator "}[r.keys] + name
	}
	return "address " + network.Visitor(s.client(c.Context()))
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
