package local_test

import (
	"context"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/idempotency/local"
)

// Who had to wait for its turn is told how long the request under way has left from then
// on, and not from when it began to wait.
func TestToldOfItsTurn(t *testing.T) {
	s := cachetest.NewStall(t, noon, 1)
	keeper := openKeeper(t, cachetest.Open(t, cache.Memory), local.Options{Now: s.Now})
	first, second := make(chan idempotency.Outcome, 1), make(chan idempotency.Outcome, 1)
	begin := func(ctx context.Context, told chan<- idempotency.Outcome) {
		o, err := keeper.Begin(ctx, name, body)
		if err != nil {
			t.Error(err)
		}
		told <- o
	}
	go begin(context.Background(), first)
	s.Kept(t)
	waiter := cachetest.NewWaiter(context.Background())
	go begin(waiter, second)
	waiter.Waits(t)
	s.Pass(30_000)
	s.End()
	if o := <-first; o.State != idempotency.Started {
		t.Errorf("the first: %v", o.State)
	}
	if o := <-second; o.State != idempotency.InFlight || o.RetryAfter != idempotency.DefaultTerms().Lease {
		t.Errorf("the second: %v, again in %d ms", o.State, o.RetryAfter)
	}
}

// Who waits for a key that another has gives up when his context ends.
func TestNobodyWaitsBeyondItsContext(t *testing.T) {
	s := cachetest.NewStall(t, noon, 1)
	keeper := openKeeper(t, cachetest.Open(t, cache.Memory), local.Options{Now: s.Now})
	lease := idempotency.Lease{Name: name, Body: body, Token: idempotency.NewToken()}
	first := make(chan error, 1)
	go func() { _, err := keeper.Begin(context.Background(), name, body); first <- err }()
	s.Kept(t)
	cachetest.LetGo(t, map[string]func(ctx context.Context) error{
		"begin":   func(ctx context.Context) error { _, err := keeper.Begin(ctx, name, body); return err },
		"finish":  func(ctx context.Context) error { _, err := keeper.Finish(ctx, lease, answer); return err },
		"abandon": func(ctx context.Context) error { _, err := keeper.Abandon(ctx, lease); return err },
		"look":    func(ctx context.Context) error { _, _, err := keeper.Look(ctx, lease); return err },
	}, idempotency.ErrUnavailable)
	s.End()
	if err := <-first; err != nil {
		t.Error(err)
	}
}
