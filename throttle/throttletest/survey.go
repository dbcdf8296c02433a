package throttletest

import (
	"context"
	"slices"
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

// Surveyed are how many sends each history has that a limiter goes through, in order.
func Surveyed(t testing.TB, limiter throttle.Surveyor) (sends []int) {
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
