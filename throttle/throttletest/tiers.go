package throttletest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

const usual = "minute=1/60s,hour=5/1h,day=10/24h"

// tiers is what every home promises of a Policy.
func tiers(t *testing.T, open Open) {
	t.Run("a first send", func(t *testing.T) {
		k := tiersKey(t, open, usual)
		k.expect(k.peek(), "allowed [minute 1 0 0] [hour 5 0 0] [day 10 0 0]")
		v := k.take(throttle.NewID())
		k.expect(v, "allowed by minute for 60000 [minute 0 60000 60000] [hour 4 0 3600000] [day 9 0 86400000]")
		if v.Now != start || v.At != start || v.RetryAt != start+60_000 || v.Sent != 1 || v.Newest != start {
			t.Errorf("%+v", v)
		}
	})
	t.Run("a refusal changes nothing", func(t *testing.T) {
		k := tiersKey(t, open, usual)
		k.admit()
		before := k.history()
		for range 100 {
			k.add(599)
			k.refuse()
		}
		if after := k.history(); !slices.Equal(before, after) {
			t.Fatalf("the history was %v and is %v", before, after)
		}
		k.set(start + 60_000)
		k.admit()
	})
	t.Run("a wait ends to the millisecond", func(t *testing.T) {
		k := tiersKey(t, open, usual)
		waited := map[string]int{}
		for range 30 {
			v := k.take(throttle.NewID())
			if !v.Allowed {
				t.Fatalf("refused at the end of the wait: %s", spell(v))
			}
			waited[v.Limit]++
			k.set(v.RetryAt - 1)
			if early := k.refuse(); early.Wait != 1 {
				t.Fatalf("one millisecond early: %s", spell(early))
			}
			k.set(v.RetryAt)
		}
		if len(waited) != 3 {
			t.Errorf("only these tiers were ever full: %v", waited)
		}
	})
	t.Run("the longest wait names the limit", func(t *testing.T) {
		k := tiersKey(t, open, "short=1/1s,long=2/4s")
		k.admit()
		k.add(3000)
		k.admit() // both tiers are full until 4000: the longer window is named
		k.expect(k.refuse(), "refused by long for 1000 [short 0 1000 1000] [long 0 1000 1000]")
		k.add(1000)
		k.expect(k.take(throttle.NewID()), "allowed by long for 3000 [short 0 1000 1000] [long 0 3000 3000]")
	})
	t.Run("refill is when the oldest send leaves", func(t *testing.T) {
		k := tiersKey(t, open, "quick=1/2s,short=3/20s")
		k.admit()
		k.add(5000)
		k.expect(k.peek(), "allowed [quick 1 0 0] [short 2 0 15000]")
		k.admit()
		k.expect(k.peek(), "refused by quick for 2000 [quick 0 2000 2000] [short 1 0 15000]")
	})
	t.Run("take is idempotent by id", func(t *testing.T) {
		k := tiersKey(t, open, usual)
		first := k.admit()
		k.add(1000)
		v := k.take(first.ID)
		k.expect(v, "allowed by minute for 59000 [minute 0 59000 59000] [hour 4 0 3599000] [day 9 0 86399000]")
		if v.At != start || v.RetryAt != start+60_000 || len(k.history()) != 1 {
			t.Fatalf("%+v, history %v", v, k.history())
		}
		refused := throttle.NewID()
		if k.take(refused).Allowed {
			t.Fatal("a second send in the minute")
		}
		k.set(start + 60_000)
		if v := k.take(refused); !v.Allowed || v.At != k.now() {
			t.Fatalf("an id that was refused before: %s", spell(v))
		}
		k.set(start + 10*86_400_000) // its id is forgotten with its window
		if v := k.take(first.ID); !v.Allowed || v.At != k.now() || len(k.history()) != 1 {
			t.Fatalf("%s, history %v", spell(v), k.history())
		}
	})
	t.Run("release", func(t *testing.T) {
		k := tiersKey(t, open, "minute=2/60s,hour=3/1h")
		first, second := k.admit(), k.admit()
		k.expect(k.refuse(), "refused by minute for 60000 [minute 0 60000 60000] [hour 1 0 3600000]")
		if k.release(throttle.Admission{ID: throttle.NewID(), At: start}) {
			t.Fatal("released what was never admitted")
		}
		if !k.release(first) || k.release(first) {
			t.Fatal("an admission was not given back, or twice")
		}
		k.expect(k.peek(), "allowed [minute 1 0 60000] [hour 2 0 3600000]")
		if !k.release(second) || len(k.history()) != 0 {
			t.Fatalf("history %v after all was given back", k.history())
		}
		k.expect(k.peek(), "allowed [minute 2 0 0] [hour 3 0 0]")
	})
	t.Run("release at the end of the window", func(t *testing.T) {
		k := tiersKey(t, open, "minute=1/60s")
		a := k.admit()
		k.set(start + 60_000)
		if !k.release(a) {
			t.Fatal("not given back")
		}
		k.set(start + 59_999)
		k.expect(k.peek(), "allowed [minute 1 0 0]")
		a = k.admit()
		k.set(a.At + 60_999)
		if !k.release(a) {
			t.Fatal("not given back while it was on record")
		}
		k.set(a.At + 70_000)
		a = k.admit()
		k.set(a.At + 61_000)
		if k.release(a) {
			t.Fatal("given back after the record has expired")
		}
	})
	t.Run("reset", func(t *testing.T) {
		k := tiersKey(t, open, "minute=2/60s,hour=3/1h")
		if n := k.reset(); n != 0 {
			t.Fatalf("%d sends of a new key were forgotten", n)
		}
		k.admit()
		k.add(3_600_000 - 1)
		k.admit()
		k.add(1) // the first has left the hour
		if n := k.reset(); n != 1 {
			t.Fatalf("%d sends were forgotten, want 1", n)
		}
		k.expect(k.peek(), "allowed [minute 2 0 0] [hour 3 0 0]")
		// What had expired when it was reset is not found again.
		k.admit()
		k.add(2 * 3_600_000)
		k.reset()
		k.set(start)
		k.expect(k.peek(), "allowed [minute 2 0 0] [hour 3 0 0]")
	})
	t.Run("history", func(t *testing.T) {
		k := tiersKey(t, open, "minute=2/60s,hour=3/1h")
		first := k.admit()
		k.add(60_000)
		second := k.admit()
		if h := k.history(); !slices.Equal(h, throttle.History{first, second}) || first.At != start || second.At != start+60_000 {
			t.Fatalf("history %v of %v and %v", h, first, second)
		}
		k.set(start + 3_600_000)
		if h := k.history(); !slices.Equal(h, throttle.History{second}) {
			t.Fatalf("history %v, want %v", h, second)
		}
	})
	t.Run("each visits histories with sends", func(t *testing.T) { each(t, open) })
	t.Run("keys are apart", func(t *testing.T) {
		k := tiersKey(t, open, usual)
		k.admit()
		for _, name := range []string{k.name + " ", strings.ToUpper(k.name), k.name[1:], k.name + "\x00", "{" + k.name + "}", "\x00" + k.name, "*" + k.name} {
			other := k
			other.name = name
			other.admit()
			if n := other.reset(); n != 1 {
				t.Fatalf("%d sends of key %q were forgotten", n, name)
			}
		}
		if len(k.history()) != 1 {
			t.Fatalf("history %v", k.history())
		}
	})
	t.Run("a clock that steps back", func(t *testing.T) { clockStepsBack(t, open) })
}

func clockStepsBack(t *testing.T, open Open) {
	k := tiersKey(t, open, "minute=2/60s,hour=4/1h")
	k.admit()
	k.add(30_000)
	k.admit()
	k.set(start - 86_400_000)
	// No window opens early and none lasts longer: the newest send is the moment that counts.
	v := k.refuse()
	k.expect(v, "refused by minute for 30000 [minute 0 30000 30000] [hour 2 0 3570000]")
	if v.Now != k.now() || v.At != start+30_000 || v.RetryAt != start+60_000 {
		t.Fatalf("%+v", v)
	}
	k.set(v.RetryAt - 1)
	k.refuse()
	k.set(v.RetryAt)
	k.admit()
	// Also after a release of the newest: its moment stays.
	k = tiersKey(t, open, "minute=1/60s")
	k.admit()
	k.add(60_000)
	newest := k.admit()
	k.set(start + 60_001)
	if !k.release(newest) {
		t.Fatal("the newest was not given back")
	}
	k.set(start + 30_000)
	if a := k.admit(); a.At != start+60_000 {
		t.Fatalf("on record %d ms after the first, in its window", a.At-start)
	}
	k.set(start + 119_999)
	k.refuse()
	k.set(start + 120_000)
	k.admit()
}

// each counts the keys of its own by the number of their sends, as the home may hold others.
func each(t *testing.T, open Open) {
	k := tiersKey(t, open, "hour=1000/1h")
	historian := k.limiter.(throttle.Historian)
	own := map[throttle.ID]int{} // the first id of each key to its sends
	for sends := range 4 {
		k.name = newName()
		for i := range sends {
			k.add(1) // sends of one millisecond come in any order
			if a := k.admit(); i == 0 {
				own[a.ID] = sends
			}
		}
	}
	k.name = newName()
	k.release(k.admit()) // a key without sends is not visited
	visited := 0
	err := historian.Each(context.Background(), func(h throttle.History) bool {
		if len(h) == 0 {
			t.Error("a history without sends")
			return true
		}
		if sends, ok := own[h[0].ID]; ok {
			if visited++; len(h) != sends {
				t.Errorf("history %v, want %d sends", h, sends)
			}
		}
		return true
	})
	if err != nil || visited != len(own) {
		t.Fatalf("%d of %d visited, %v", visited, len(own), err)
	}
	visited = 0
	err = historian.Each(context.Background(), func(throttle.History) bool { visited++; return false })
	if err != nil || visited != 1 {
		t.Fatalf("%d visited after the first said stop, %v", visited, err)
	}
}

// calls is what every method does with arguments that cannot be right.
func calls(t *testing.T, open Open) {
	k := tiersKey(t, open, usual)
	one := throttle.Admission{ID: throttle.NewID(), At: start}
	all := map[string]func(ctx context.Context, key string) error{
		"take":    func(ctx context.Context, key string) error { _, err := k.limiter.Take(ctx, key, one.ID); return err },
		"peek":    func(ctx context.Context, key string) error { _, err := k.limiter.Peek(ctx, key); return err },
		"release": func(ctx context.Context, key string) error { _, err := k.limiter.Release(ctx, key, one); return err },
		"reset":   func(ctx context.Context, key string) error { _, err := k.limiter.Reset(ctx, key); return err },
		"record":  func(ctx context.Context, key string) error { return k.limiter.Record(ctx, key, one) },
		"history": func(ctx context.Context, key string) error {
			_, err := k.limiter.(throttle.Historian).History(ctx, key)
			return err
		},
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for name, call := range all {
		for _, key := range []string{"", strings.Repeat("a", throttle.MaxKey+1)} {
			if err := call(context.Background(), key); !errors.Is(err, throttle.ErrKey) {
				t.Errorf("%s with a key of %d bytes: %v", name, len(key), err)
			}
		}
		if err := call(ended, k.name); !errors.Is(err, throttle.ErrUnavailable) || !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), k.name) {
			t.Errorf("%s with an ended context: %v", name, err)
		}
	}
	if h := k.history(); len(h) != 0 {
		t.Errorf("calls that failed left the history %v", h)
	}
	if _, err := k.limiter.Take(context.Background(), k.name, throttle.ID{}); !errors.Is(err, throttle.ErrID) {
		t.Errorf("take with the zero id: %v", err)
	}
	if err := k.limiter.Record(context.Background(), k.name, one, throttle.Admission{At: start}); !errors.Is(err, throttle.ErrID) {
		t.Errorf("record with the zero id: %v", err)
	}
	k.record() // nothing
	k.name += strings.Repeat("m", throttle.MaxKey-len(k.name))
	k.admit()
	k.record()
	if len(k.history()) != 1 {
		t.Errorf("history %v after nothing was recorded", k.history())
	}
}
