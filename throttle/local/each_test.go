package local_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// surveyed are how many sends each history has that a limiter goes through.
func surveyed(t *testing.T, limiter throttle.Surveyor) (sends []int) {
	t.Helper()
	err := limiter.Each(context.Background(), func(h throttle.History) bool {
		sends = append(sends, len(h))
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(sends)
	return sends
}

// Each limiter goes through its own histories, whatever its mailboxes are called, and
// through no send that counts no more.
func TestEach(t *testing.T) {
	disk, err := cache.Open(cache.DiskOptions{Dir: cache.Memory})
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	now := int64(1_800_000_000_000)
	policy := throttletest.Policy(t, "hour=9/1h")
	limiter, err := local.New(disk, local.Options{Policy: policy, Now: func() int64 { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer limiter.Close()
	guesses, other := limiter.Tiers("guesses", policy), limiter.Tiers("guess", policy)
	take := func(l *local.Limiter, mailbox string, times int) {
		for range times {
			if v, err := l.Take(context.Background(), mailbox, throttle.NewID()); err != nil || !v.Allowed {
				t.Fatalf("%+v, %v", v, err)
			}
		}
	}
	take(limiter, "left@example.com", 1)
	take(limiter, "half@example.com", 1)
	now += 3_599_999
	take(limiter, "half@example.com", 1)
	take(limiter, "\x00guesses\x00a", 3)
	take(guesses, "a", 4)
	take(guesses, "\x00", 5)
	take(other, "a", 6)
	now++
	for _, tt := range []struct {
		limiter *local.Limiter
		want    string
	}{{limiter, "[1 3]"}, {guesses, "[4 5]"}, {other, "[6]"}, {limiter.Tiers("none", policy), "[]"}} {
		if got := fmt.Sprint(surveyed(t, tt.limiter)); got != tt.want {
			t.Errorf("went through %s, want %s", got, tt.want)
		}
	}
	limiter.Close()
	if err := limiter.Each(context.Background(), nil); !errors.Is(err, throttle.ErrUnavailable) {
		t.Errorf("after Close: %v", err)
	}
}
