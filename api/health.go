package api

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/internal/wire"
)

// healthAnswer is the state of the process, since when it continues without the history that it
// shares with others, and how many operations that lacks.
type healthAnswer struct {
	Status        string      `json:"status"`
	Degraded      bool        `json:"degraded,omitzero"`
	DegradedSince wire.Moment `json:"degraded_since,omitzero"`
	Journal       int         `json:"journal,omitzero"`
}

// showLive says that the process answers.
func (s *Server) showLive(c *fiber.Ctx) error {
	requestOf(c).Level = slog.LevelDebug
	return respond(c, healthAnswer{Status: "live"})
}

// showReady says whether requests can be served.
func (s *Server) showReady(c *fiber.Ctx) error {
	if err := s.checkReady(); err != nil {
		return err
	}
	requestOf(c).Level = slog.LevelDebug
	if since, lacks := s.with.Health.Degraded(); since != 0 {
		return respond(c, healthAnswer{"ready", true, wire.Moment(since), lacks})
	}
	return respond(c, healthAnswer{Status: "ready"})
}

// checkReady refuses while the server drains, or the stores cannot be used.
func (s *Server) checkReady() error {
	if s.draining.Load() {
		return &problem{kind: notReady, detail: "This server is shutting down.", retryAfter: soon}
	}
	if err := s.stores.check(s.alive, &s.with); err != nil {
		return &problem{kind: notReady, detail: "The storage cannot be read or written.", retryAfter: soon,
			cause: fmt.Errorf("checking whether the stores are ready: %w", err)}
	}
	return nil
}

// storeCheck asks the stores once for all requests of a moment.
type storeCheck struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

// checkLife is how long an answer of the stores is used again.
const checkLife = 250 * time.Millisecond

func (k *storeCheck) check(ctx context.Context, o *Options) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.at) < checkLife {
		return k.err
	}
	ctx, cancel := context.WithTimeout(ctx, o.Health.StoreTimeout)
	defer cancel()
	k.err, k.at = o.Health.Ready(ctx), time.Now()
	return k.err
}
