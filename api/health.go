package api

import (
	"context"
	"errors"

	"github.com/mailgate/mailgate/api/wire"
)

// A status is how the process does, in a word, and since when without the history that it
// shares with others.
type status struct {
	Status        string `json:"status"`
	Degraded      bool   `json:"degraded,omitzero"`
	DegradedSince string `json:"degraded_since,omitempty"`
}

// living says that the process answers.
func (s *Server) living(context.Context, *call, struct{}) (status, error) {
	return status{Status: "live"}, nil
}

// ready says whether requests can be served: no while draining, no while the stores
// cannot be asked.
func (s *Server) ready(ctx context.Context, _ *call, _ struct{}) (status, error) {
	if s.draining.Load() {
		return status{}, &problem{kind: notReady, detail: "This server is shutting down.", retryAfter: storeRetry}
	}
	ctx, cancel := context.WithTimeout(ctx, s.with.StoreTimeout)
	defer cancel()
	if err := s.with.Ready(ctx); err != nil {
		return status{}, &problem{kind: notReady, detail: "The history cannot be read or written now.", retryAfter: storeRetry,
			cause: errors.Join(errors.New("asking whether the stores are ready"), err)}
	}
	if since := s.with.DegradedSince(); since != 0 {
		return status{"ready", true, wire.Time(since)}, nil
	}
	return status{Status: "ready"}, nil
}
