package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// Each limiter goes through its own histories on every master, and through no send that
// counts no more.
func TestEach(t *testing.T) {
	alone, servers := redistest.Alone(t), redistest.Cluster(t)
	for _, tt := range []struct{ url, prefix string }{{alone.URL(), ""}, {alone.URL(), "acme:"}, {servers.URL(), ""}} {
		clock := clocktest.New(1_800_000_000_000)
		policy := throttletest.Policy(t, "hour=9/1h")
		limiter := openWith(t, policy, redisstore.Options{URL: tt.url, Prefix: tt.prefix, Clock: clock.Now, Timeout: patient})
		guesses := limiter.Tiers("guesses", policy)
		take(t, limiter, "left@example.com", throttle.NewID())
		take(t, limiter, "half@example.com", throttle.NewID())
		clock.Set(clock.Now() + 3_599_999)
		take(t, limiter, "half@example.com", throttle.NewID())
		for i := range 100 {
			take(t, limiter, fmt.Sprintf("many%d@example.com", i), throttle.NewID())
		}
		for range 4 {
			take(t, guesses, "half@example.com", throttle.NewID())
		}
		clock.Set(clock.Now() + 1)
		want := slices.Repeat([]int{1}, 101)
		if got := throttletest.Surveyed(t, limiter); !slices.Equal(got, want) {
			t.Errorf("%v: went through %v", tt, got)
		}
		if got := throttletest.Surveyed(t, guesses); !slices.Equal(got, []int{4}) {
			t.Errorf("%v: of guesses, went through %v", tt, got)
		}
		seen := 0
		if err := limiter.Each(context.Background(), func(throttle.History) bool { seen++; return seen < 7 }); err != nil || seen != 7 {
			t.Errorf("%v: saw %d, %v", tt, seen, err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		err := limiter.Each(ctx, func(throttle.History) bool { cancel(); return true })
		if !errors.Is(err, throttle.ErrUnavailable) || !errors.Is(err, context.Canceled) {
			t.Errorf("%v: its time was over: %v", tt, err)
		}
	}
}

var _ throttle.Surveyor = (*cluster.Limiter)(nil)
