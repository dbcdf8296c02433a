package prober

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/redis/go-redis/v9"
)

// hook is that of the program's client of a master, or of a Cluster whose masters are not known. It fails
// calls that would not be answered, and notes what the others say of the master.
type hook struct{ *Master }

type callKey struct{} // of a context inside a call, such as for a handshake

// DialHook implements redis.Hook.
func (h hook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return h.call(ctx, func(ctx context.Context) error { return next(ctx, cmd) })
	}
}

// ProcessPipelineHook implements redis.Hook.
func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := h.call(ctx, func(ctx context.Context) error { return next(ctx, cmds) })
		if errors.Is(err, redisx.ErrAway) {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

// call makes a call unless it would not be answered. A master that says that it takes no writes answers
// at once, and may be read.
func (m *Master) call(ctx context.Context, do func(context.Context) error) error {
	known := m.Address == "" && m.prober.addressOf("any") != "" // the masters of a Cluster have hooks, too
	if known || ctx.Value(callKey{}) != nil {
		return do(ctx)
	}
	m.mu.Lock()
	vain, cause := m.evidence.state == Away || m.evidence.failed >= failedCalls, m.cause
	m.mu.Unlock()
	if vain && !redisx.IsReply(cause) {
		return fmt.Errorf("%w: %v", redisx.ErrAway, cause)
	}
	err := do(context.WithValue(ctx, callKey{}, true))
	if err == nil || redisx.IsReply(err) {
		m.mu.Lock()
		m.evidence.heard()
		m.mu.Unlock()
	} else if redisx.Unanswered(ctx, err) {
		m.suspect(1, cmp.Or(context.Cause(ctx), err))
	}
	return err
}
