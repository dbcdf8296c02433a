package api

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/apikey"
)

// share bounds how many requests of one kind are in progress.
type share struct {
	most  int64 // 0 for any number
	inUse atomic.Int64
}

// take reports whether there was room for one more request, which then has to leave.
func (s *share) take() bool {
	if n := s.inUse.Add(1); s.most > 0 && n > s.most {
		s.inUse.Add(-1)
		return false
	}
	return true
}

func (s *share) leave() { s.inUse.Add(-1) }

// withoutKey returns how many requests without a key are in progress at once. A browser loads a page
// over six connections; more for each processor makes sends beside a flood slower.
func withoutKey() int { return max(8, 2*runtime.GOMAXPROCS(0)) }

// keylessShare returns how many requests without a valid key may be in progress. Where no keys
// are set every program of this machine is a caller, and a Fallback may hold its requests for any
// time.
func keylessShare(o Options) int64 {
	if o.APIKeys.IsZero() || o.Fallback != nil {
		return 0
	}
	return int64(withoutKey())
}

// share refuses a request without a valid key when the share of all of those is used up.
func (s *Server) share(c *fiber.Ctx) error {
	r := requestOf(c)
	s.identify(c, r)
	if r.shown == open && !s.takeKeyless(r) {
		r.route, r.unlogged = "without-key", true // so that a flood costs neither a log line nor a duration
		time.Sleep(refusalPause)
		return tooManyWithoutKey()
	}
	return c.Next()
}

// refusalPause delays the refusal of a request without a key: clients that repeat it as fast as
// they are refused would take all processors.
const refusalPause = 250 * time.Millisecond

func (s *Server) takeKeyless(r *request) bool {
	r.keyless = r.keyless || s.keyless.take()
	return r.keyless
}

func tooManyWithoutKey() *problem {
	return &problem{kind: busy, retryAfter: soon, detail: "Too many requests without a valid key are in progress. This one had no effect."}
}

// RequestsPerKey returns how many requests under one key's name are in progress at once, of so many
// connections: a quarter, but enough for one busy back end where there are few.
func RequestsPerKey(connections int) int { return max(1, connections/4, min(connections/2, 256)) }

// caller is what the requests under one key's name use, so that none uses everything.
type caller struct {
	share
	deciding chan struct{} // one entry for each request that is being decided
}

// newCallers makes one for each name of an application's keys.
func newCallers(keys apikey.Keys, most int) map[string]*caller {
	all := map[string]*caller{}
	for _, name := range keys.Names() {
		all[name] = newCaller(most)
	}
	return all
}

func newCaller(most int) *caller {
	return &caller{share: share{most: int64(most)}, deciding: make(chan struct{}, decidingPerProcessor*runtime.GOMAXPROCS(0))}
}

// decidingPerProcessor is how many requests of a caller each processor decides at once. The
// others wait for them, not for a processor, which is free for other callers.
const decidingPerProcessor = 32

// enter refuses a request of a caller that has too many in progress, and waits while too many of
// its requests are being decided. A route that needs no key uses the share of those without one,
// whatever key is shown.
func (s *Server) enter(c *fiber.Ctx, r *request, to access) error {
	if to == open {
		if !s.takeKeyless(r) {
			return tooManyWithoutKey()
		}
		return nil
	}
	if r.key == "" {
		return nil
	}
	who := s.operators
	if to == applications {
		who = s.callers[r.key]
	}
	if !who.take() {
		return s.tooMany(c)
	}
	r.caller = who
	select {
	case who.deciding <- struct{}{}:
		r.deciding = true
		return nil
	case <-r.ctx.Done():
		return s.tooMany(c)
	}
}

// tooMany refuses a request of a caller. A send that is refused here does not come to where the
// others are counted.
func (s *Server) tooMany(c *fiber.Ctx) error {
	if c.Route().Path == "/send-code" {
		s.metrics.sent(string(delivery.Busy))
	}
	return &problem{kind: busy, retryAfter: soon,
		detail: "Too many requests with this key are in progress. This one had no effect and was not charged."}
}

// freeSlot lets the caller's next request be decided, while this one waits for a relay or in a
// queue.
func (r *request) freeSlot() {
	if r.deciding {
		<-r.caller.deciding
		r.deciding = false
	}
}
