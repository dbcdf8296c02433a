package api

import (
	"context"
	"errors"
	"time"

	"github.com/mailgate/mailgate/api/wire"
)

// readyTimeout is how long the stores may take to say that they are there.
const readyTimeout = 2 * time.Second

// living says that the process answers.
func (s *Server) living(context.Context, *call, struct{}) (string, error) { return "live", nil }

// ready says whether requests can be served: no while draining, no while the stores
// cannot be asked.
func (s *Server) ready(ctx context.Context, _ *call, _ struct{}) (string, error) {
	if s.draining.Load() {
		return "", &problem{kind: notReady, detail: "This server is shutting down.", retryAfter: storeRetry}
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := s.with.Ready(ctx); err != nil {
		return "", &problem{kind: notReady, detail: "The history cannot be read or written now.", retryAfter: storeRetry,
			cause: errors.Join(errors.New("asking whether the stores are ready"), err)}
	}
	return "ready", nil
}

func writeStatus(out *answer, status *string) {
	out.json(200)
	b := append(out.body, `{"status":`...)
	out.body = append(wire.AppendString(b, *status), '}')
}
