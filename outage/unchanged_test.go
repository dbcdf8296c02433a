package outage_test

import (
	"context"
	"errors"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/outage"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// A take that failed is proof that nothing was charged where the shared history's error is,
// and that of the own history where it was tried: one that is closed has written nothing.
func TestWhatAFailedTakeProves(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault fault
		proof bool
	}{
		{"not asked, and an own history that is closed", dead, true},
		{"not heard, and an own history that is closed", silent, false},
	} {
		clock, p := clocktest.New(start), throttletest.Policy(t, "minute=1/60s")
		n := openNode(t, openShared(t, p, clock), cachetest.Open(t, cache.Memory), p, clock.Now, nil)
		full := cachetest.Open(t, cache.Memory)
		limiter := n.watch.Historian("mailbox", p.Longest(), n.shared, openLimiter(t, full, p, clock.Now))
		n.shared.set(tt.fault)
		if err := full.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := limiter.Take(context.Background(), alice, throttle.NewID())
		if !errors.Is(err, throttle.ErrUnavailable) || errors.Is(err, throttle.ErrUnchanged) != tt.proof {
			t.Errorf("%s: %v, proof %v", tt.name, err, !tt.proof)
		}
	}
}

// A fickle history admits, and is then gone: for the release, or for the take after it.
type fickle struct {
	*shared
	takes int
	gone  bool // for releases
}

var (
	errGone  = errors.New("gone")
	notAsked = throttle.Unchanged(unavailable(throttle.ErrUnavailable, errGone))
)

func (f *fickle) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	if f.takes++; f.takes > 1 {
		return throttle.Verdict{}, notAsked
	}
	return f.shared.Take(ctx, key, id)
}

func (f *fickle) Release(ctx context.Context, key string, id throttle.ID) (bool, error) {
	if f.gone {
		return false, notAsked
	}
	return f.shared.Release(ctx, key, id)
}

// An error proves nothing of what the same call has charged before.
func TestALaterTryProvesNothing(t *testing.T) {
	for name, gone := range map[string]bool{"the release failed": true, "the next take failed": false} {
		clock, p := clocktest.New(start), throttletest.Policy(t, "minute=1/60s")
		n := openNode(t, openShared(t, p, clock), cachetest.Open(t, cache.Memory), p, clock.Now, func(o *outage.Options) {
			o.Away = func(err error) bool { return !errors.Is(err, errGone) && unavailableIsAway(err) }
		})
		n.shared.during = func() {
			n.shared.set(dead)
			n.take(alice, throttle.NewID())
			n.shared.set(none)
		}
		there := &fickle{shared: n.shared, gone: gone}
		limiter := n.watch.Historian("mailbox", p.Longest(), there, n.own)
		n.Historian = n.watch.Historian("mailbox", p.Longest(), n.shared, n.own)
		_, err := limiter.Take(context.Background(), alice, throttle.NewID())
		if err == nil || errors.Is(err, throttle.ErrUnchanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
