package api

import (
	"context"
	"runtime/debug"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/api/gate"
	"github.com/mailgate/mailgate/network"
	"github.com/mailgate/mailgate/throttle"
)

// lookupsRule is what answers call the limit of lookups.
const lookupsRule = "lookups"

// bounded lets no caller through to a route more often than Lookups admits. Whoever
// shows no key that opens it is counted by his address, so that he cannot use up what
// belongs to a caller.
func (s *Server) bounded(r *route) (fiber.Handler, error) {
	handler, err := gate.New(gate.Options{
		Limiter: s.with.Lookups,
		Name:    lookupsRule,
		User: func(c *fiber.Ctx) (string, bool) {
			name := s.callerOf(r, c)
			return name, name != ""
		},
		Key: func(c *fiber.Ctx) string { return network.Visitor(s.client(c.Context())) },
		Refuse: func(c *fiber.Ctx, v throttle.Verdict) error {
			ch := &charge{standing: ofOne(lookupsRule, v), whom: "this caller's lookups", then: "The next one is answered"}
			s.refuseEarlier(r, c, denied(ch))
			return nil
		},
		Failed: func(c *fiber.Ctx, err error) error {
			s.refuseEarlier(r, c, problemOf(err))
			return nil
		},
	})
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
	s.serve(&route{name: r.name, step: func(_ context.Context, call *call, _ *incoming, _ *answer) error {
		call.key = name
		return p
	}}, "", c.Context())
}

// caught makes an answer of a panic before the route's work, where nothing else would.
func (s *Server) caught(r *route, next fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		defer func() {
			if value := recover(); value != nil {
				s.with.Log.Error("a limiter panicked", "route", r.name, "stack", string(debug.Stack()))
				s.refuseEarlier(r, c, problemOf(panicked(value)))
			}
		}()
		return next(c)
	}
}
