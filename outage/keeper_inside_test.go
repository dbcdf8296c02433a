package outage

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/idempotency/local"
	"github.com/mailgate/mailgate/servertest"
)

// A gone keeper is never there.
type gone struct{ idempotency.Keeper }

func (gone) Abandon(context.Context, idempotency.Lease) (bool, error) {
	return false, idempotency.ErrUnavailable
}

func (gone) BeginAs(context.Context, idempotency.Lease) (idempotency.Outcome, error) {
	return idempotency.Outcome{}, idempotency.ErrUnavailable
}

// A beginner begins requests alone, one after the other.
type beginner struct {
	*Keeper
	t     *testing.T
	clock atomic.Int64
	begun int
}

func openBeginner(t *testing.T, pause time.Duration) *beginner {
	t.Helper()
	b, terms := &beginner{t: t}, idempotency.Terms{Lease: 100, Keep: 100}
	disk := cachetest.Open(t, cache.Memory)
	own, err := local.New(disk, local.Options{Terms: terms, Name: "own", Size: cachetest.Small, Now: b.clock.Load})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Close)
	w, err := NewWatch(Options{Disk: disk, Away: unavailableIsAway, Shared: func(context.Context) error { return nil }, Now: b.clock.Load, Pause: pause})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(context.Background()) })
	b.Keeper = w.Keeper("marks", terms, gone{}, own)
	return b
}

func (b *beginner) begin() (idempotency.Outcome, error) {
	b.begun++
	name := idempotency.Name{Caller: "shop", Key: fmt.Sprint(b.begun)}
	return b.Begin(context.Background(), name, idempotency.Fingerprint{})
}

func (b *beginner) begins() idempotency.Lease {
	b.t.Helper()
	o, err := b.begin()
	if err != nil || o.State != idempotency.Started {
		b.t.Fatal(o.State, err)
	}
	return o.Lease
}

// What was begun alone and never ends, as a mark does not, is not remembered for good, though
// there is no other outage.
func TestBegunAndNeverEnded(t *testing.T) {
	b := openBeginner(t, time.Millisecond)
	b.watch.Start()
	for range 3 {
		b.begins()
	}
	b.clock.Add(99)
	b.begins()
	b.clock.Add(1)
	left := func() int64 { return b.Keeper.begun.number.Load() }
	servertest.Eventually(t, "those that have ended to be forgotten", func() bool { return left() <= 1 })
	if b.watch.sweep(); left() != 1 {
		t.Error("one that has not ended was forgotten")
	}
}

// Beyond what can be remembered nothing is begun alone, until something has ended.
func TestTooManyAreBegun(t *testing.T) {
	b := openBeginner(t, 0)
	b.Keeper.begun.most = 3
	lease := b.begins()
	b.begins()
	if _, err := b.BeginAs(context.Background(), lease); err != nil { // which takes no more room
		t.Fatal(err)
	}
	b.begins()
	if _, err := b.begin(); !errors.Is(err, idempotency.ErrUnavailable) || !errors.Is(err, errTooMuch) {
		t.Errorf("beyond it: %v", err)
	}
	for range 2 { // once is enough
		if _, err := b.Abandon(context.Background(), lease); err != nil {
			t.Fatal(err)
		}
	}
	b.begins()
	if _, err := b.begin(); !errors.Is(err, errTooMuch) {
		t.Errorf("beyond it again: %v", err)
	}
}
