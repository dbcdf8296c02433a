package servertest

import (
	"testing"
	"time"
)

// Await asks again and again until there is no error, and fails the test with
// the last one when the limit has passed.
func Await(t testing.TB, what string, limit time.Duration, ask func() error) {
	t.Helper()
	deadline := time.After(limit)
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("waited %v in vain for %s: %v", limit, what, err)
		case <-again.C:
		}
	}
}
