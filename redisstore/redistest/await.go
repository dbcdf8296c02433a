package redistest

import (
	"testing"
	"time"

	"github.com/mailgate/mailgate/servertest"
)

// healing is how long a client may take to find its way after a failover.
const healing = 20 * time.Second

// Healed asks until there is an answer, such as of a client whose server has failed over,
// and returns it. It fails the test with the last error if there is none in 20 s.
func Healed[T any](t testing.TB, ask func() (T, error)) (answer T) {
	t.Helper()
	servertest.Await(t, "an answer", healing, func() (err error) {
		answer, err = ask()
		return err
	})
	return answer
}
