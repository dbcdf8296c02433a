package servertest

import (
	"errors"
	"testing"
	"time"
)

// Await calls ask until it returns no error, and fails the test with the last error after the limit.
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
			t.Fatalf("waited %v for %s: %v", limit, what, err)
		case <-again.C:
		}
	}
}

// Eventually waits up to a minute until holds returns true.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	Await(t, what, time.Minute, func() error {
		if holds() {
			return nil
		}
		return errNotYet
	})
}

var errNotYet = errors.New("it does not hold")
