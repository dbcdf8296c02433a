package local_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// Each limiter goes through its own histories, whatever its mailboxes are called, and
// through no send that counts no more.
func TestEach(t *testing.T) {
	clock := clocktest.New(noon)
	policy := throttletest.Policy(t, "hour=9/1h")
	limiter := openLimiter(t, cachetest.Open(t, cache.Memory), local.Options{Policy: policy, Now: clock.Now})
	guesses, other := limiter.Tiers("guesses", policy), limiter.Tiers("guess", policy)
	send := func(l *local.Limiter, mailbox string, times int) {
		for range times {
			take(t, l, mailbox, throttle.NewID(), true)
		}
	}
	send(limiter, "left@example.com", 1)
	send(limiter, "half@example.com", 1)
	clock.Add(3_599_999)
	send(limiter, "half@example.com", 1)
	send(limiter, "\x00guesses\x00a", 3)
	send(guesses, "a", 4)
	send(guesses, "\x00", 5)
	send(other, "a", 6)
	clock.Add(1)
	for _, tt := range []struct {
		limiter *local.Limiter
		want    string
	}{{limiter, "[1 3]"}, {guesses, "[4 5]"}, {other, "[6]"}, {limiter.Tiers("none", policy), "[]"}} {
		if got := fmt.Sprint(throttletest.Surveyed(t, tt.limiter)); got != tt.want {
			t.Errorf("went through %s, want %s", got, tt.want)
		}
	}
	limiter.Close()
	if err := limiter.Each(context.Background(), nil); !errors.Is(err, throttle.ErrUnavailable) {
		t.Errorf("after Close: %v", err)
	}
}
