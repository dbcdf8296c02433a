package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
)

// A server that hangs is told from a caller whose own time is up, however his context ends.
func TestSilence(t *testing.T) {
	t.Parallel()
	const timeout = 50 * time.Millisecond
	hour, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	server := redistest.Alone(t)
	server.Pause()
	defer server.Resume()
	store := func() *redisstore.Store { // none has learnt yet that the server hangs
		return open(t, redisstore.Options{URL: server.URL(), Timeout: timeout})
	}
	calls := map[string]func(context.Context) error{
		"ask":     func(ctx context.Context) error { return asked(ctx, store(), redisstore.Call.Ask) },
		"once":    func(ctx context.Context) error { return asked(ctx, store(), redisstore.Call.Once) },
		"ready":   func(ctx context.Context) error { return store().Ready(ctx) },
		"prepare": func(ctx context.Context) error { _, err := store().Prepare(ctx); return err },
	}
	for doing, call := range calls {
		for name, ctx := range map[string]context.Context{"without an end": context.Background(), "with time left": hour} {
			err := call(ctx)
			if !errors.Is(err, redisstore.ErrSilent) || errors.Is(err, context.DeadlineExceeded) || redisstore.Undone(err) ||
				!strings.Contains(err.Error(), "redis did not answer within 50ms") {
				t.Errorf("%s, a context %s: %v", doing, name, err)
			}
		}
	}
	for doing, call := range calls {
		brief, cancel := context.WithTimeout(context.Background(), timeout/2)
		defer cancel()
		if err := call(brief); errors.Is(err, redisstore.ErrSilent) || !errors.Is(err, context.DeadlineExceeded) || brief.Err() == nil {
			t.Errorf("%s, a context that ended: %v", doing, err)
		}
	}
}

// Whoever gives up asking is not kept until the server's time is up.
func TestWhoGivesUpAskingIsLetGo(t *testing.T) {
	t.Parallel()
	store, server := openReady(t, patient)
	server.Pause()
	defer server.Resume()
	ctx, giveUp := context.WithCancel(context.Background())
	time.AfterFunc(10*time.Millisecond, giveUp)
	began := time.Now()
	err := store.Ready(ctx)
	if took := time.Since(began); !errors.Is(err, context.Canceled) || took > patient/2 {
		t.Errorf("%v after %v", err, took)
	}
}

// asked is how the simplest call on a record ends.
func asked(ctx context.Context, store *redisstore.Store, ask func(redisstore.Call, *redisstore.Script, ...any) (string, error)) error {
	call, err := store.Begin(ctx, store.Prefix()+"key")
	if err != nil {
		return err
	}
	defer call.End()
	_, err = ask(call, count)
	return err
}
