package outage

import (
	"context"

	"github.com/mailgate/mailgate/throttle"
)

// An OwnHistory is a limiter that keeps every send, and takes up those admitted elsewhere.
type OwnHistory interface {
	throttle.Historian
	throttle.Recorder
}

// A Survey is one that can be gone through.
type Survey interface {
	throttle.Surveyor
	throttle.Recorder
}

// A Historian is a Limiter that keeps every send. It implements throttle.Surveyor.
type Historian struct {
	*Limiter
	shared Survey
	own    OwnHistory
}

// Historian makes one of a pair; see [Watch.Limiter].
func (w *Watch) Historian(name string, longest int64, shared Survey, own OwnHistory) *Historian {
	return &Historian{Limiter: w.Limiter(name, longest, shared, own), shared: shared, own: own}
}

// History returns the sends inside the longest window: those of all nodes, or while the
// shared history is away those of this one.
func (h *Historian) History(ctx context.Context, key string) (sends throttle.History, err error) {
	err = h.look(ctx, "history", key, func(at throttle.Recorder) error {
		if at == throttle.Recorder(h.own) {
			sends, err = h.own.History(ctx, key)
		} else {
			sends, err = h.shared.History(ctx, key)
		}
		return err
	})
	return sends, err
}

// Each goes through the shared history alone: one node's part of it would tell little.
func (h *Historian) Each(ctx context.Context, visit func(throttle.History) bool) error {
	return h.shared.Each(ctx, visit)
}
