// Package throttletest is the contract of throttle.Limiter as tests: one suite and one model
// for every home.
//
// Run checks a home with each algorithm: the promises one by one, vectors from an
// independent oracle, races for one key, and random histories against a model too naive to
// be wrong.
package throttletest

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

// Open returns a limiter that counts by the algorithm and reads the time from now. It may
// share its records with others: the suite makes a new key for each test.
type Open func(t testing.TB, a throttle.Algorithm, now func() int64) throttle.Limiter

// Run checks a home against the whole contract and takes so many steps of random histories.
func Run(t *testing.T, open Open, steps int) {
	t.Run("vectors", func(t *testing.T) { Vectors(t, open) })
	t.Run("tiers", func(t *testing.T) { tiers(t, open) })
	t.Run("record", func(t *testing.T) { record(t, open) })
	t.Run("counters", func(t *testing.T) { counters(t, open) })
	t.Run("calls", func(t *testing.T) { calls(t, open) })
	t.Run("races", func(t *testing.T) { races(t, open) })
	t.Run("random histories", func(t *testing.T) { Walk(t, open, 1, steps) })
}

// Long reports whether tests run at their full length, as `make long` lets them.
func Long() bool { return os.Getenv("MAILGATE_TEST_LONG") != "" }

// Length is one of two lengths of a test.
func Length(usual, long int) int {
	if Long() {
		return long
	}
	return usual
}

// start is an ordinary moment for the clock of a test: the beginning of a day.
const start = int64(20_833 * 86_400_000)

// clock is a clock that a test moves.
type clock struct{ at atomic.Int64 }

func (c *clock) now() int64  { return c.at.Load() }
func (c *clock) set(t int64) { c.at.Store(t) }
func (c *clock) add(t int64) { c.at.Add(t) }

// key is one key of a limiter, for tests that expect no errors.
type key struct {
	*clock
	t       testing.TB
	limiter throttle.Limiter
	name    string
}

// newKey opens a limiter, at start, and a key that no other test has used.
func newKey(t testing.TB, open Open, a throttle.Algorithm) key {
	t.Helper()
	c := new(clock)
	c.set(start)
	return key{clock: c, t: t, limiter: open(t, a, c.now), name: newName()}
}

// tiersKey is newKey with a policy.
func tiersKey(t testing.TB, open Open, policy string) key {
	t.Helper()
	return newKey(t, open, Policy(t, policy))
}

func newName() string { return fmt.Sprintf("%s%s@example.com", throttle.NewID(), throttle.NewID()) }

// Policy parses a policy that is right.
func Policy(t testing.TB, text string) throttle.Policy {
	t.Helper()
	return must[throttle.Policy](t)(throttle.ParsePolicy(text))
}

// must returns a function that returns a value or fails the test.
func must[T any](t testing.TB) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (k key) take(id throttle.ID) throttle.Verdict {
	k.t.Helper()
	return must[throttle.Verdict](k.t)(k.limiter.Take(context.Background(), k.name, id))
}

// admit takes with a new id, which must be admitted.
func (k key) admit() throttle.Admission {
	k.t.Helper()
	id := throttle.NewID()
	v := k.take(id)
	if !v.Allowed {
		k.t.Fatalf("refused: %s", spell(v))
	}
	return throttle.Admission{ID: id, At: v.At}
}

// refuse takes with a new id, which must be refused.
func (k key) refuse() throttle.Verdict {
	k.t.Helper()
	v := k.take(throttle.NewID())
	if v.Allowed {
		k.t.Fatalf("admitted at %d: %s", k.now()-start, spell(v))
	}
	return v
}

func (k key) peek() throttle.Verdict {
	k.t.Helper()
	return must[throttle.Verdict](k.t)(k.limiter.Peek(context.Background(), k.name))
}

func (k key) release(a throttle.Admission) bool {
	k.t.Helper()
	return must[bool](k.t)(k.limiter.Release(context.Background(), k.name, a))
}

func (k key) reset() int {
	k.t.Helper()
	return must[int](k.t)(k.limiter.Reset(context.Background(), k.name))
}

func (k key) record(all ...throttle.Admission) {
	k.t.Helper()
	if err := k.limiter.Record(context.Background(), k.name, all...); err != nil {
		k.t.Fatal(err)
	}
}

// recordAt records a send of this moment.
func (k key) recordAt(at int64) throttle.Admission {
	k.t.Helper()
	a := throttle.Admission{ID: throttle.NewID(), At: at}
	k.record(a)
	return a
}

func (k key) history() throttle.History {
	k.t.Helper()
	return must[throttle.History](k.t)(k.limiter.(throttle.Historian).History(context.Background(), k.name))
}

// expect compares a verdict with its text, such as
// "refused by minute for 60000 [minute 0 60000 60000] [hour 4 0 3600000]".
func (k key) expect(v throttle.Verdict, want string) {
	k.t.Helper()
	if got := spell(v); got != want {
		k.t.Fatalf("at %d\n got %s\nwant %s", k.now()-start, got, want)
	}
}

// spell writes a verdict: of each tier its name, Remaining, Wait and Refill.
func spell(v throttle.Verdict) string {
	text := "refused"
	if v.Allowed {
		text = "allowed"
	}
	if v.Limit != "" || v.Wait != 0 {
		text += fmt.Sprintf(" by %s for %d", v.Limit, v.Wait)
	}
	if v.Delay != 0 {
		text += fmt.Sprintf(" delayed %d", v.Delay)
	}
	for _, t := range v.Tiers {
		text += fmt.Sprintf(" [%s %d %d %d]", t.Name, t.Remaining, t.Wait, t.Refill)
	}
	return text
}
