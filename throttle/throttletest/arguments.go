package throttletest

import (
	"context"
	"errors"
	"strings"

	"github.com/mailgate/mailgate/throttle"
)

// calls are all methods of the limiter.
func (p patron) calls() map[string]func(ctx context.Context, key string) error {
	all := map[string]func(ctx context.Context, key string) error{
		"take": func(ctx context.Context, key string) error {
			_, err := p.limiter.Take(ctx, key, throttle.NewID())
			return err
		},
		"peek": func(ctx context.Context, key string) error { _, err := p.limiter.Peek(ctx, key); return err },
		"release": func(ctx context.Context, key string) error {
			_, err := p.limiter.Release(ctx, key, throttle.NewID())
			return err
		},
		"reset": func(ctx context.Context, key string) error { _, err := p.limiter.Reset(ctx, key); return err },
	}
	if r, ok := p.recorder(); ok {
		all["record"] = func(ctx context.Context, key string) error {
			return r.Record(ctx, key, throttle.Admission{ID: throttle.NewID(), At: start})
		}
	}
	if by, ok := p.limiter.(counter); ok {
		all["count"] = func(ctx context.Context, key string) error { _, err := by.Count(ctx, key); return err }
	}
	if historian, ok := p.limiter.(throttle.Historian); ok {
		all["history"] = func(ctx context.Context, key string) error { _, err := historian.History(ctx, key); return err }
	}
	return all
}

func (p patron) endedContext() {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for name, call := range p.calls() {
		if err := call(ctx, p.mailbox); !errors.Is(err, throttle.ErrUnavailable) || !errors.Is(err, throttle.ErrUnchanged) || !errors.Is(err, context.Canceled) {
			p.t.Errorf("%s after its context ended: %v", name, err)
		}
	}
}

func (p patron) badArguments() {
	p.t.Helper()
	ctx := context.Background()
	for name, call := range p.calls() {
		for _, key := range []string{"", strings.Repeat("a", throttle.MaxKey+1)} {
			if err := call(ctx, key); !errors.Is(err, throttle.ErrKey) || !errors.Is(err, throttle.ErrUnchanged) {
				p.t.Errorf("%s with a key of %d bytes: %v", name, len(key), err)
			}
		}
	}
	if _, err := p.limiter.Take(ctx, p.mailbox, throttle.ID{}); !errors.Is(err, throttle.ErrID) || !errors.Is(err, throttle.ErrUnchanged) {
		p.t.Errorf("take with the zero id: %v", err)
	}
	long := patron{t: p.t, limiter: p.limiter, mailbox: newMailbox("long")}
	long.mailbox += strings.Repeat("m", throttle.MaxKey-len(long.mailbox))
	long.admit()
}
