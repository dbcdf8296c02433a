package redistest

import (
	"testing"
	"time"
)

// healing is how long a client may take to find its way after a failover.
const healing = 20 * time.Second

// Healed asks until there is an answer, such as of a client whose server has failed over,
// and returns it. It fails the test with the last error if there is none in 20 s.
func Healed[T any](t testing.TB, ask func() (T, error)) (answer T) {
	t.Helper()
	await(t, "an answer", healing, func() (err error) {
		answer, err = ask()
		return err
	})
	return answer
}

// await asks again and again until there is no error, and fails the test with
// the last one when the limit has passed.
func await(t testing.TB, what string, limit time.Duration, ask func() error) {
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
