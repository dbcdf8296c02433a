package api_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// A leaky bucket sends at even distances and refuses what its queue has no room for.
func TestSend_LeakyBucket_EvenDistances(t *testing.T) {
	const apart = 40
	r, _ := paced(t, 2, apart)
	for i, delay := range []any{nil, 40.0, 80.0} { // the clock of the limiter stands still
		began := time.Now()
		got := r.send(fmt.Sprintf("pace%d@example.com", i))
		got.is(t, 200, "")
		got.logged(t, fields{"delay_ms": delay})
		if took := time.Since(began); took < time.Duration(i*apart)*time.Millisecond {
			t.Errorf("email %d left after %v", i, took)
		}
	}
	got := r.send("pace-full@example.com")
	got.is(t, 429, "quota-exceeded")
	got.says(t, fields{"limit": "pace", "wait_ms": float64(apart)})
}

// paced is a rig whose sends leave so many milliseconds apart, by the limiter that is returned.
func paced(t *testing.T, queue int, apart int64) (*rig, *throttle.Limiter) {
	t.Helper()
	var pace *throttle.Limiter
	r := newRig(t, setup{rules: func(r *rig, _ *rules.Rule) []rules.Rule {
		pace = r.counted("pace", must.Get(throttle.NewLeakyBucket(tier("pace", 1, apart), queue))(t))
		return []rules.Rule{{Name: "pace", By: rules.ByAll, Limiter: pace}}
	}})
	return r, pace
}

func room(t *testing.T, pace *throttle.Limiter) int {
	t.Helper()
	return must.Get(pace.Peek(context.Background(), "all"))(t).Tiers[0].Remaining
}

// A send that cannot leave within its deadline is given back at once.
func TestSend_QueueTooLong_GivenBack(t *testing.T) {
	r, pace := paced(t, 5, 20_000)
	r.send("first@example.com").is(t, 200, "")
	got := r.send("late@example.com")
	got.is(t, 503, "busy")
	got.carries(t, map[string]string{"Retry-After": "20"})
	if r.used("late@example.com") != 0 || room(t, pace) != 5 {
		t.Errorf("%d on record, room for %d", r.used("late@example.com"), room(t, pace))
	}
}

// A queued send leaves during a shutdown if there is time to hand it over, and is given back at once
// if there is not.
func TestShutdown_QueuedSends_LeaveOrAreGivenBack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		apart  int64
		status int
		name   string
		used   int
	}{{1000, 200, "", 1}, {8000, 503, "busy", 0}} {
		t.Run(fmt.Sprint(tt.apart), func(t *testing.T) {
			r, pace := paced(t, 5, tt.apart)
			r.send("first@example.com").is(t, 200, "")
			answer := make(chan reply, 1)
			go func() { answer <- r.send("queued@example.com") }()
			servertest.Eventually(t, "the send is queued", func() bool { return room(t, pace) == 4 })
			r.shutdown()
			(<-answer).is(t, tt.status, tt.name)
			r.charged("queued@example.com", tt.used)
		})
	}
}
