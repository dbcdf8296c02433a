package redisx

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// around is a hook in which one function makes each command and each pipeline.
type around struct {
	make func(ctx context.Context, next func(context.Context) error) error
}

// Around returns a hook in which a function makes each command and each pipeline, by next. It is not asked about those
// that are part of another, such as of a handshake. Where it does not call next, its error is that of each command.
func Around(make func(ctx context.Context, next func(context.Context) error) error) redis.Hook {
	return &around{make}
}

// DialHook implements redis.Hook.
func (a *around) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (a *around) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return a.once(ctx, func(ctx context.Context) error { return next(ctx, cmd) })
	}
}

// ProcessPipelineHook implements redis.Hook.
func (a *around) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		sent := false
		err := a.once(ctx, func(ctx context.Context) error { sent = true; return next(ctx, cmds) })
		for _, cmd := range cmds {
			if !sent {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

func (a *around) once(ctx context.Context, next func(context.Context) error) error {
	if ctx.Value(a) != nil {
		return next(ctx)
	}
	return a.make(context.WithValue(ctx, a, true), next)
}
