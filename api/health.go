package api

import (
	"context"
	"errors"

	"github.com/mailgate/mailgate/api/wire"
)

// A status is how the process does, in a word, and since when without the history that it
// shares with others.
type status struct {
	word          string
	degradedSince int64 // 0 if with it
}

// living says that the process answers.
func (s *Server) living(context.Context, *call, struct{}) (status, error) {
	return status{word: "live"}, nil
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
	return status{word: "ready", degradedSince: s.with.DegradedSince()}, nil
}

func writeStatus(out *answer, s *status) {
	out.json()
	b := append(out.body, `{"status":`...)
	b = wire.AppendString(b, s.word)
	if s.degradedSince != 0 {
		b = append(b, `,"degraded":true,"degraded_since":`...)
		b = wire.AppendTime(b, s.degradedSince)
	}
	out.body = append(b, '}')
}
