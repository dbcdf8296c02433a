package memory_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/memory"
	"github.com/mailgate/mailgate/throttle/meter"
)

func count(t testing.TB, l *memory.Limiter, key string) throttle.Reading {
	t.Helper()
	r, err := l.Count(context.Background(), key)
	if err != nil {
		t.Fatalf("count for %s: %v", key, err)
	}
	return r
}

// Many who count at once are admitted exactly as often as the limit says.
func TestCountsAtOnceKeepToTheLimit(t *testing.T) {
	const callers, limit = 64, 20
	l := memory.New(burst(t, limit), memory.Options{Now: clocktest.New(start).Now})
	for round := range 200 {
		var admitted atomic.Int64
		var done sync.WaitGroup
		for range callers {
			done.Go(func() {
				if count(t, l, fmt.Sprint(round)).Allowed {
					admitted.Add(1)
				}
			})
		}
		done.Wait()
		if n := admitted.Load(); n != limit {
			t.Fatalf("%d admitted, want %d", n, limit)
		}
	}
}

// Who takes, gives back and counts at once loses nothing of another's.
func TestCountsAmongTakesLoseNothing(t *testing.T) {
	const callers, each, keys = 8, 300, 3
	tier := throttle.Tier{Name: "hour", Limit: 1_000_000, Window: 3_600_000}
	sliding, err1 := meter.NewSlidingWindow(tier, 0)
	token, err2 := meter.NewTokenBucket(tier, 0)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	for _, m := range []meter.Meter{sliding, token} {
		l := memory.New(m, memory.Options{Now: clocktest.New(start).Now})
		var stays [keys]atomic.Int64
		var done sync.WaitGroup
		for caller := range callers {
			done.Go(func() {
				for i := range each {
					n := (caller + i) % keys
					key := fmt.Sprint(n)
					if i%3 == 0 {
						count(t, l, key)
						stays[n].Add(1)
						continue
					}
					_, id := take(t, l, key)
					if i%3 == 1 {
						release(t, l, key, id)
						continue
					}
					stays[n].Add(1)
				}
			})
		}
		done.Wait()
		for n := range keys {
			if used, err := l.Reset(t.Context(), fmt.Sprint(n)); int64(used) != stays[n].Load() || err != nil {
				t.Errorf("%s: %d count, want %d; %v", m, used, stays[n].Load(), err)
			}
		}
	}
}

// A no says at every moment how long it lasts, and not when it is over.
func TestANoToACountIsSaidUntilItIsOver(t *testing.T) {
	clock := clocktest.New(start)
	l := memory.New(bucket(t), memory.Options{Now: clock.Now})
	count(t, l, "key")
	count(t, l, "key")
	for _, left := range []int64{30_000, 29_999, 1} {
		clock.Set(start + 30_000 - left)
		for range 2 {
			if r := count(t, l, "key"); r.Allowed || r.Wait != left || r.Clock != clock.Now() {
				t.Errorf("%d ms before its wait is over: %+v", left, r)
			}
		}
	}
	clock.Add(1)
	if r := count(t, l, "key"); !r.Allowed || r.Wait != 30_000 {
		t.Errorf("when its wait is over: %+v", r)
	}
}

func TestCountIsRefusedWhereThereIsNoRoom(t *testing.T) {
	l := memory.New(bucket(t), memory.Options{Keys: 1, Now: clocktest.New(start).Now})
	count(t, l, "key")
	r, err := l.Count(t.Context(), "another")
	if !errors.Is(err, memory.ErrFull) || !errors.Is(err, throttle.ErrUnchanged) || r != (throttle.Reading{}) {
		t.Errorf("%+v, %v", r, err)
	}
	if want := "count: the history is unavailable: as many keys as Options.Keys has room for still count"; err.Error() != want {
		t.Errorf("the error says %q, want %q", err, want)
	}
}

// However many are counted, a key takes the memory of its first send, and no allocation.
func TestCountTakesNoMemory(t *testing.T) {
	hour := throttle.Tier{Name: "hour", Limit: 1_000_000, Window: 3_600_000}
	fixed, err1 := meter.NewFixedWindow(hour)
	token, err2 := meter.NewTokenBucket(hour, 0)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	const keys = 10_000
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprint("198.51.100.", i)
	}
	for name, m := range map[string]meter.Meter{"FixedWindow": fixed, "TokenBucket": token} {
		before := heap()
		l := memory.New(m, memory.Options{Now: clocktest.New(start).Now})
		for range 5 {
			for _, key := range names {
				count(t, l, key)
			}
		}
		got, want := (heap()-before)/keys, documented(t, name)[1]
		if got > want+want/10 {
			t.Errorf("%s: %d bytes a key, and one send takes %d", name, got, want)
		}
		if n := testing.AllocsPerRun(100, func() { count(t, l, names[0]) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		runtime.KeepAlive(l)
	}
}
