package api

import (
	"context"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/hooks"
	"github.com/mailgate/mailgate/internal/apikey"
	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/share"
)

// share refuses a request without a valid key when the share of all of those is used up.
func (s *Server) share(c *fiber.Ctx) error {
	r := requestOf(c)
	s.identify(r)
	s.identifyHook(r)
	if r.keyOpens == open && !s.takeKeyless(r) {
		r.Route, r.Unlogged = "without-key", true // so that a flood costs neither a log line nor a duration
		time.Sleep(refusalPause)
		return tooManyWithoutKey()
	}
	return c.Next()
}

// refusalPause delays the refusal of a request without a key: clients that repeat it as fast as
// they are refused would take all processors.
const refusalPause = 250 * time.Millisecond

func (s *Server) takeKeyless(r *request) bool {
	r.keyless = r.keyless || s.keyless.Take()
	return r.keyless
}

func tooManyWithoutKey() *problem {
	return &problem{kind: busy, retryAfter: soon, detail: "Too many requests without a valid key are in progress. This one had no effect."}
}

// RequestsPerKey returns how many requests of one key may be in progress at once, of so many connections: a quarter, and
// half, up to 256, where there are few.
func RequestsPerKey(connections int) int { return max(1, connections/4, min(connections/2, 256)) }

// newCallers makes one for each name of an application's keys, and for each hook.
func newCallers(keys apikey.Keys, on []hooks.Hook, most int) map[string]*share.Caller {
	all := map[string]*share.Caller{}
	for _, name := range slices.Concat(keys.Names(), hooks.Names(on)) {
		all[name] = share.NewCaller(most)
	}
	return all
}

// enter begins the span and the time of a request, which has a deadline. It refuses a request of a caller that has too
// many in progress, and waits while too many of its requests are being decided. A route that needs no key uses the share
// of those without one, whatever key is shown.
func (s *Server) enter(r *request, to access, deadline time.Time) error {
	r.ctx, r.cancel = context.WithDeadline(s.traced(r, to), deadline)
	if to == open {
		if !s.takeKeyless(r) {
			return tooManyWithoutKey()
		}
		return nil
	}
	if r.Key == "" {
		return nil
	}
	who := s.operators
	if to != operators {
		who = s.callers[r.Key]
	}
	if r.held.Enter(r.ctx, who) {
		return nil
	}
	// A send that is refused here does not come to where the others are counted.
	if _, reports := r.hook.(hooks.Reporter); r.c.Route().Path == "/send-code" || r.hook != nil && !reports {
		r.What = ledger.Busy
	}
	return &problem{kind: busy, retryAfter: soon,
		detail: "Too many requests with this key are in progress. This one had no effect and was not charged."}
}
