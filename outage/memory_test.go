package outage_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/outage"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// A node that keeps nothing has met the shared history when it has met all parts of it: else
// it would go on with nothing for those that are away, at each start anew.
func TestAPartIsAwayAtTheStart(t *testing.T) {
	clock, p, all := clocktest.New(start), throttletest.Policy(t, "minute=1/60s"), new(line)
	s := openShared(t, p, clock)
	n := openNode(t, s, cachetest.Open(t, cache.Memory), p, clock.Now, func(o *outage.Options) {
		o.Kept, o.Shared, o.Whole = false, func(context.Context) error { return nil }, all.ready
	})
	n.take("well@example.com", throttle.NewID())
	s.set(dead) // on which alice's record lies
	all.set(dead)
	ctx, well := context.Background(), func(context.Context) error { return nil }
	if err := n.watch.Ready(ctx, well); err != nil {
		t.Error(err)
	}
	if _, err := n.Take(ctx, alice, throttle.NewID()); !errors.Is(err, throttle.ErrUnavailable) {
		t.Errorf("with nothing to go on with: %v", err)
	}
	s.set(none)
	all.set(none)
	n.watch.Start()
	n.take("well@example.com", throttle.NewID())
	n.healthy()
	s.set(dead)
	if v := n.take(alice, throttle.NewID()); !v.Allowed || !v.Degraded {
		t.Errorf("%+v", v)
	}
}

// While a part is away, and all else answers, it is asked for with pauses.
func TestAPartThatStaysAwayIsNotAskedForWithoutEnd(t *testing.T) {
	const pause, times = 5 * time.Millisecond, 10
	asked := make(chan struct{}, 1_000_000)
	s := openShared(t, throttletest.Policy(t, "minute=1/60s"), clocktest.New(start))
	n := openNode(t, s, cachetest.Open(t, cache.Memory), throttletest.Policy(t, "minute=1/60s"), clocktest.New(start).Now, func(o *outage.Options) {
		o.Kept, o.Pause, o.Shared = false, pause, func(context.Context) error { return nil }
		o.Whole = func(context.Context) error {
			asked <- struct{}{}
			return errors.New("a part is away")
		}
	})
	began := time.Now()
	n.watch.Start()
	n.take(alice, throttle.NewID())
	for range times {
		<-asked
	}
	if took := time.Since(began); took < (times-2)*pause {
		t.Errorf("asked for %d times in %v", times, took)
	}
}
