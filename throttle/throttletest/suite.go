// Package throttletest is the contract of throttle.Limiter as tests: one suite and one model
// for every home.
//
// Run checks a limiter with each algorithm: by vectors of an independent oracle, by races for one
// key, and by random histories beside a model too naive to be wrong.
package throttletest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// Open returns a limiter that counts by the algorithm and reads the time from now. Limiters of
// one name share their records if their algorithms have one form.
type Open func(t testing.TB, name string, a throttle.Algorithm, now func() int64) *throttle.Limiter

// Local opens limiters of throttle/local over one store: in the directory, or in memory if dir is
// empty. The store reads the clock of the limiter that was opened last.
func Local(t testing.TB, dir string) Open {
	t.Helper()
	var clock atomic.Pointer[func() int64]
	machine := func() int64 { return time.Now().UnixMilli() }
	clock.Store(&machine)
	store := must.Get(cache.Open(cache.Options{Dir: dir, Now: func() int64 { return (*clock.Load())() }}))(t)
	t.Cleanup(func() { _ = store.Close() })
	return func(_ testing.TB, name string, a throttle.Algorithm, now func() int64) *throttle.Limiter {
		clock.Store(&now)
		return local.New(store.Table(name), a)
	}
}

// Run checks the limiters that open returns, also with random histories of that many steps. With fewer than allVectors
// it runs as small a part of the vectors: for a home whose steps are those of another, which has them all.
func Run(t *testing.T, open Open, steps int) {
	t.Run("the newest are kept", func(t *testing.T) { newestAreKept(t, open) })
	t.Run("keys are apart", func(t *testing.T) { keysAreApart(t, open) })
	t.Run("calls", func(t *testing.T) { calls(t, open) })
	t.Run("looks", func(t *testing.T) { looks(t, open) })
	t.Run("vectors", func(t *testing.T) { vectors(t, open, max(1, allVectors/steps)) })
	t.Run("races", func(t *testing.T) { races(t, open) })
	t.Run("two limits on one record", func(t *testing.T) { views(t, open) })
	t.Run("random histories", func(t *testing.T) { walk(t, open, steps) })
}

const allVectors = 3000

// Length returns how long a test is: usual, or long under MAILGATE_TEST_LONG=1.
func Length(usual, long int) int {
	if os.Getenv("MAILGATE_TEST_LONG") != "" {
		return long
	}
	return usual
}

// Policy parses a policy, or ends the test.
func Policy(t testing.TB, text string) throttle.Policy {
	t.Helper()
	return must.Get(throttle.ParsePolicy(text))(t)
}

// Counters returns the four counters with a tier, such as "minute=3/60s", and small parameters.
func Counters(t testing.TB, tier string) map[string]throttle.Algorithm {
	t.Helper()
	parsed := must.Get(throttle.ParseTier(tier))(t)
	return map[string]throttle.Algorithm{
		"fixed window":   must.Get(throttle.NewFixedWindow(parsed))(t),
		"sliding window": must.Get(throttle.NewSlidingWindow(parsed, 6))(t),
		"token bucket":   must.Get(throttle.NewTokenBucket(parsed, 0))(t),
		"leaky bucket":   must.Get(throttle.NewLeakyBucket(parsed, parsed.Limit-1))(t),
	}
}

func newestAreKept(t *testing.T, open Open) {
	k := newKey(t, open, Policy(t, "hour=1000/1h"))
	k.add(2000)
	all := make([]throttle.Admission, throttle.MaxKept+5)
	for i := range all {
		all[i] = throttle.Admission{ID: throttle.NewID(), At: start + int64(i)}
	}
	k.record(all...)
	k.record(throttle.Admission{ID: throttle.NewID(), At: start})
	if h := k.history(); len(h) != throttle.MaxKept || h[0] != all[5] {
		t.Fatalf("%d are kept, from %v on", len(h), h[0])
	}
	if v := k.take(throttle.NewID()); v.Allowed || v.RetryAt != all[5].At+3_600_000 {
		t.Fatalf("%+v", v)
	}
}

func keysAreApart(t *testing.T, open Open) {
	k := newKey(t, open, throttle.DefaultPolicy())
	k.take(throttle.NewID())
	for _, name := range []string{
		k.name + " ", strings.ToUpper(k.name), k.name[1:], k.name + "\x00", "\x00" + k.name, "{" + k.name + "}", "}" + k.name, "a:{" + k.name,
		"*", "*" + k.name, "[" + k.name + "]", k.name + "\r\nb", `\`, "\xff\xfe", "'..redis.call('FLUSHALL')..'", "]]",
	} {
		other := k
		other.name = name
		if v, n := other.take(throttle.NewID()), other.reset(); !v.Allowed || n != 1 {
			t.Fatalf("key %q: %+v, and %d sends were forgotten", name, v, n)
		}
	}
	if len(k.history()) != 1 {
		t.Fatalf("history %v", k.history())
	}
}

// looks tests that a look, or a release of an unknown id, neither writes nor deletes. The limit may have shorter windows
// than the one that wrote the record.
func looks(t *testing.T, open Open) {
	all := Counters(t, "long=3/10m")
	all["log"] = Policy(t, "long=3/10m")
	for name, a := range all {
		k := newKey(t, open, a)
		k.name = newName()
		for range 2 {
			k.take(throttle.NewID())
		}
		before := must.Get(k.limiter.Look(context.Background(), k.name))(t)
		short := k
		if a.Exact() {
			short.limiter = k.limiter.With(Policy(t, "short=1/2s"))
		}
		k.add(60_000)
		short.peek()
		_, _ = short.limiter.Recall(context.Background(), k.name)
		_, _ = short.limiter.History(context.Background(), k.name)
		if a.Exact() {
			short.release(throttle.Admission{ID: throttle.NewID(), At: start})
		}
		none := newName()
		if v, err := short.limiter.Peek(context.Background(), none); err != nil || !v.Allowed {
			t.Errorf("%s: a key without a record: %+v, %v", name, v, err)
		}
		if r := must.Get(k.limiter.Look(context.Background(), none))(t); len(r.State) > 0 {
			t.Errorf("%s: a look made a record: %q", name, r.State)
		}
		if after := must.Get(k.limiter.Look(context.Background(), k.name))(t); len(after.State) == 0 || !bytes.Equal(after.State, before.State) {
			t.Errorf("%s: looks changed the record %q to %q", name, before.State, after.State)
		}
	}
}

// calls tests every method with wrong arguments.
func calls(t *testing.T, open Open) {
	k := newKey(t, open, throttle.DefaultPolicy())
	one := throttle.Admission{ID: throttle.NewID(), At: start}
	all := map[string]func(ctx context.Context, key string) error{
		"take":    func(ctx context.Context, key string) error { _, err := k.limiter.TakeID(ctx, key, one.ID); return err },
		"peek":    func(ctx context.Context, key string) error { _, err := k.limiter.Peek(ctx, key); return err },
		"release": func(ctx context.Context, key string) error { _, err := k.limiter.Release(ctx, key, one); return err },
		"reset":   func(ctx context.Context, key string) error { _, err := k.limiter.Reset(ctx, key); return err },
		"record":  func(ctx context.Context, key string) error { return k.limiter.Record(ctx, key, one) },
		"history": func(ctx context.Context, key string) error { _, err := k.limiter.History(ctx, key); return err },
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for name, call := range all {
		for _, key := range []string{"", strings.Repeat("a", 1025)} {
			if err := call(context.Background(), key); !errors.Is(err, throttle.ErrKey) {
				t.Errorf("%s with a key of %d bytes: %v", name, len(key), err)
			}
		}
		if err := call(ended, k.name); !errors.Is(err, throttle.ErrUnavailable) || !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), k.name) {
			t.Errorf("%s with an ended context: %v", name, err)
		}
	}
	if _, err := k.limiter.TakeID(context.Background(), k.name, throttle.ID{}); !errors.Is(err, throttle.ErrID) {
		t.Errorf("take with the zero id: %v", err)
	}
	if err := k.limiter.Record(context.Background(), k.name, one, throttle.Admission{At: start}); !errors.Is(err, throttle.ErrID) {
		t.Errorf("record with the zero id: %v", err)
	}
	k.record() // nothing
	if h := k.history(); len(h) != 0 {
		t.Errorf("calls that failed left the history %v", h)
	}
	k.name += strings.Repeat("m", 1024-len(k.name))
	if v := k.take(throttle.NewID()); !v.Allowed {
		t.Errorf("the longest key: %+v", v)
	}
	for name, a := range Counters(t, "minute=3/60s") {
		if _, err := open(t, throttle.NewID().String(), a, k.now).History(context.Background(), k.name); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("history of a %s: %v", name, err)
		}
	}
}

// start is when the clock of a test begins: the beginning of a day.
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
	limiter *throttle.Limiter
	records string // the name that shares them
	name    string
}

// newKey opens a limiter, at start, and a key that no other test has used.
func newKey(t testing.TB, open Open, a throttle.Algorithm) key {
	t.Helper()
	c := new(clock)
	c.set(start)
	records := throttle.NewID().String()
	return key{clock: c, t: t, limiter: open(t, records, a, c.now), records: records, name: newName()}
}

func newName() string { return fmt.Sprintf("%s%s@example.com", throttle.NewID(), throttle.NewID()) }

func (k key) take(id throttle.ID) throttle.Verdict {
	k.t.Helper()
	return must.Get(k.limiter.TakeID(context.Background(), k.name, id))(k.t)
}

func (k key) peek() throttle.Verdict {
	k.t.Helper()
	return must.Get(k.limiter.Peek(context.Background(), k.name))(k.t)
}

func (k key) release(a throttle.Admission) bool {
	k.t.Helper()
	return must.Get(k.limiter.Release(context.Background(), k.name, a))(k.t)
}

func (k key) reset() int {
	k.t.Helper()
	return must.Get(k.limiter.Reset(context.Background(), k.name))(k.t)
}

func (k key) record(all ...throttle.Admission) {
	k.t.Helper()
	must.OK(k.t, k.limiter.Record(context.Background(), k.name, all...))
}

func (k key) history() throttle.History {
	k.t.Helper()
	return must.Get(k.limiter.History(context.Background(), k.name))(k.t)
}
