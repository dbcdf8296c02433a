package api

import (
	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/api/gate"
	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/throttle"
)

// boundLookups admits as many requests of a caller as Options.Lookups does. A request without a
// key that opens the route is counted by its address, so that it cannot use up the quota of a
// caller. Keys of the two kinds may have one name, and are counted apart.
func (s *Server) boundLookups(to access) fiber.Handler {
	prefix := map[access]string{applications: "application ", operators: "operator "}[to]
	return s.bound("lookups", "this caller's lookups", s.with.Lookups, func(c *fiber.Ctx) (string, bool) {
		r := requestOf(c)
		return prefix + r.shownName, r.shown == to
	})
}

// boundCountdowns admits as many requests of an address as Options.Countdowns does.
func (s *Server) boundCountdowns() fiber.Handler {
	return s.bound("countdowns", "this address's countdowns", s.with.Countdowns, nil)
}

// bound makes the middleware of a limiter; nil is no limit. The RateLimit headers of the answers
// are about a mailbox, so of this limit only a refusal tells.
func (s *Server) bound(name, whose string, by throttle.Limiter, user func(*fiber.Ctx) (string, bool)) fiber.Handler {
	if by == nil {
		return func(c *fiber.Ctx) error { return c.Next() }
	}
	handler, err := gate.New(gate.Options{
		Limiter: by, Name: name, Quiet: true, User: user,
		Key: func(c *fiber.Ctx) string { return network.Visitor(requestOf(c).client) },
		Refuse: func(c *fiber.Ctx, v throttle.Verdict) error {
			s.noteKey(c, user)
			q := quotaOfOne(name, "", v)
			q.whose, q.next = whose, "The next one is answered"
			c.Response().Header.Del("RateLimit") // the gate's, in Fiber's spelling
			c.Response().Header.Del("RateLimit-Policy")
			return denied(&q)
		},
		Failed: func(c *fiber.Ctx, err error) error {
			s.noteKey(c, user)
			return err
		},
	})
	if err != nil {
		panic(err) // a limiter is set
	}
	return handler
}

// noteKey has the log name the key of a request that is refused before its key is checked.
func (s *Server) noteKey(c *fiber.Ctx, user func(*fiber.Ctx) (string, bool)) {
	if r := requestOf(c); user != nil {
		if _, ok := user(c); ok {
			r.key = r.shownName
		}
	}
}
