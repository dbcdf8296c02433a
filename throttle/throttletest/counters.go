package throttletest

import (
	"context"
	"errors"
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

// Counters are the four counters with a tier, such as "minute=3/60s", and small parameters.
func Counters(t testing.TB, tier string) map[string]throttle.Algorithm {
	t.Helper()
	parsed := must[throttle.Tier](t)(throttle.ParseTier(tier))
	return map[string]throttle.Algorithm{
		"fixed window":   must[throttle.FixedWindow](t)(throttle.NewFixedWindow(parsed)),
		"sliding window": must[throttle.SlidingWindow](t)(throttle.NewSlidingWindow(parsed, 6)),
		"token bucket":   must[throttle.TokenBucket](t)(throttle.NewTokenBucket(parsed, 0)),
		"leaky bucket":   must[throttle.LeakyBucket](t)(throttle.NewLeakyBucket(parsed, parsed.Limit-1)),
	}
}

// counters is what every home promises of the counters.
func counters(t *testing.T, open Open) {
	t.Run("fixed window", func(t *testing.T) { fixedWindow(t, open) })
	t.Run("sliding window", func(t *testing.T) { slidingWindow(t, open) })
	t.Run("token bucket", func(t *testing.T) { tokenBucket(t, open) })
	t.Run("leaky bucket", func(t *testing.T) { leakyBucket(t, open) })
	for name, a := range Counters(t, "minute=3/60s") {
		t.Run(name+" in general", func(t *testing.T) { anyCounter(t, open, a) })
	}
}

func fixedWindow(t *testing.T, open Open) {
	k := newKey(t, open, Counters(t, "minute=2/60s")["fixed window"])
	k.expect(k.peek(), "allowed [minute 2 0 0]")
	k.add(50_000)
	k.admit()
	k.expect(k.take(throttle.NewID()), "allowed by minute for 10000 [minute 0 10000 10000]")
	k.add(9_999)
	k.expect(k.refuse(), "refused by minute for 1 [minute 0 1 1]")
	// Across the edge twice the limit is admitted.
	k.add(1)
	first := k.admit()
	k.admit()
	k.expect(k.refuse(), "refused by minute for 60000 [minute 0 60000 60000]")
	// A clock behind the window is at its start.
	k.set(start + 1)
	k.expect(k.refuse(), "refused by minute for 60000 [minute 0 60000 60000]")
	if !k.release(first) {
		t.Fatal("not given back")
	}
	if a := k.admit(); a.At != start+60_000 {
		t.Fatalf("on record at %d", a.At-start)
	}
	// A send counts in the window of its time alone.
	k.set(start + 120_000)
	k.recordAt(start + 119_999)
	k.expect(k.peek(), "allowed [minute 2 0 0]")
	for range 3 {
		k.recordAt(start + 120_000)
	}
	if k.release(first) {
		t.Fatal("a send of an earlier window was given back")
	}
	k.expect(k.peek(), "refused by minute for 60000 [minute 0 60000 60000]")
	if n := k.reset(); n != 3 {
		t.Fatalf("%d sends were forgotten, want 3", n)
	}
}

func slidingWindow(t *testing.T, open Open) {
	k := newKey(t, open, Counters(t, "minute=2/60s")["sliding window"]) // six parts of 10 s
	k.expect(k.peek(), "allowed [minute 2 0 0]")
	k.add(5_000)
	first := k.admit() // its part leaves when its last millisecond does, at 69,999
	k.add(25_000)
	k.expect(k.take(throttle.NewID()), "allowed by minute for 39999 [minute 0 39999 39999]")
	k.set(start + 69_998)
	k.expect(k.refuse(), "refused by minute for 1 [minute 0 1 1]")
	if !k.release(first) || k.release(first) {
		t.Fatal("not given back, or twice")
	}
	k.expect(k.peek(), "allowed [minute 1 0 30001]")
	k.set(start + 69_999)
	newest := k.admit()
	k.expect(k.refuse(), "refused by minute for 30000 [minute 0 30000 30000]")
	// A clock that steps back is at the start of the newest part, also after its release.
	if !k.release(newest) {
		t.Fatal("not given back")
	}
	k.set(start)
	if a := k.admit(); a.At != start+60_000 {
		t.Fatalf("on record at %d", a.At-start)
	}
	// Sends are recorded in the part of their time, in any order.
	k.set(start + 75_000)
	k.recordAt(start + 29_999)
	k.recordAt(start + 9_999) // has left
	k.expect(k.peek(), "refused by minute for 24999 [minute 0 24999 24999]")
	if n := k.reset(); n != 3 {
		t.Fatalf("%d sends were forgotten, want 3", n)
	}
}

func tokenBucket(t *testing.T, open Open) {
	tier := must[throttle.Tier](t)(throttle.ParseTier("minute=6/60s")) // a token each 10 s
	k := newKey(t, open, must[throttle.TokenBucket](t)(throttle.NewTokenBucket(tier, 2)))
	k.expect(k.peek(), "allowed [minute 2 0 0]")
	first := k.admit()
	k.expect(k.take(throttle.NewID()), "allowed by minute for 10000 [minute 0 10000 10000]")
	if got := k.peek().Tiers[0]; got.Limit != 2 || got.Window.Milliseconds() != 20_000 {
		t.Fatalf("the tier is %s, want the burst and the time in which it comes back", got.Tier)
	}
	k.add(9_999)
	k.expect(k.refuse(), "refused by minute for 1 [minute 0 1 1]")
	k.add(1)
	second := k.admit()
	// The newest is given back in full, and of a send 10 s before it nothing is left.
	if k.release(first) {
		t.Fatal("a token was given back that had come back")
	}
	k.add(4_000)
	if !k.release(second) {
		t.Fatal("not given back")
	}
	k.expect(k.peek(), "allowed [minute 1 0 6000]")
	// Of one 4 s before the newest six tenths.
	third := k.admit()
	k.expect(k.peek(), "refused by minute for 6000 [minute 0 6000 6000]")
	k.add(6_000)
	k.admit()
	if !k.release(third) {
		t.Fatal("not given back")
	}
	k.expect(k.peek(), "refused by minute for 6000 [minute 0 6000 6000]")
	k.set(start)
	k.expect(k.refuse(), "refused by minute for 6000 [minute 0 6000 6000]")
	// What is recorded late takes a token from the latest moment, and never more than there are.
	k.name = newName()
	k.set(start + 100_000)
	k.record(throttle.Admission{ID: throttle.NewID(), At: start + 85_000}, throttle.Admission{ID: throttle.NewID(), At: start + 80_000})
	k.expect(k.peek(), "allowed [minute 2 0 0]")
	k.admit()
	k.recordAt(start + 95_000)
	k.expect(k.peek(), "refused by minute for 10000 [minute 0 10000 10000]")
	k.recordAt(start + 95_000)
	k.recordAt(start + 80_000)
	k.expect(k.peek(), "refused by minute for 10000 [minute 0 10000 10000]")
	if n := k.reset(); n != 2 {
		t.Fatalf("%d sends were forgotten, want 2", n)
	}
}

func leakyBucket(t *testing.T, open Open) {
	tier := must[throttle.Tier](t)(throttle.ParseTier("minute=6/60s"))
	k := newKey(t, open, must[throttle.LeakyBucket](t)(throttle.NewLeakyBucket(tier, 2)))
	k.expect(k.take(throttle.NewID()), "allowed [minute 2 0 10000]")
	k.add(1_000)
	second := k.take(throttle.NewID())
	k.expect(second, "allowed delayed 9000 [minute 1 0 9000]")
	k.add(1_000)
	third := k.take(throttle.NewID())
	k.expect(third, "allowed by minute for 8000 delayed 18000 [minute 0 8000 8000]")
	k.expect(k.refuse(), "refused by minute for 8000 [minute 0 8000 8000]")
	// A slot that others were queued behind passes unused. The newest is free at once.
	if k.release(throttle.Admission{ID: throttle.NewID(), At: second.At}) {
		t.Fatal("a slot was given back that another was queued behind")
	}
	if !k.release(throttle.Admission{ID: throttle.NewID(), At: third.At}) {
		t.Fatal("the newest was not given back")
	}
	k.expect(k.take(throttle.NewID()), "allowed by minute for 8000 delayed 18000 [minute 0 8000 8000]")
	k.set(start - 5000)
	k.expect(k.refuse(), "refused by minute for 8000 [minute 0 8000 8000]")
}

// anyCounter admits three in a minute, and takes back what it admitted.
func anyCounter(t *testing.T, open Open, a throttle.Algorithm) {
	k := newKey(t, open, a)
	if historian, ok := k.limiter.(throttle.Historian); ok {
		if _, err := historian.History(context.Background(), k.name); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("history: %v", err)
		}
	}
	id := throttle.NewID()
	k.take(id)
	k.take(id) // it knows no ids
	last := k.admit()
	if v := k.refuse(); v.Sent != 0 || v.Newest != 0 || v.Remaining() != 0 || v.RetryAt != start+v.Wait {
		t.Fatalf("%+v", v)
	}
	if !k.release(last) {
		t.Fatal("not given back")
	}
	k.admit()
	v := k.refuse()
	k.set(v.RetryAt - 1)
	k.refuse()
	k.set(v.RetryAt)
	last = k.admit()
	for range 2 {
		k.set(k.peek().RetryAt)
		k.take(throttle.NewID())
	}
	if n := k.reset(); n < 1 || n > 3 {
		t.Fatalf("%d sends were forgotten", n)
	}
	if k.release(last) {
		t.Fatal("a send was given back that was forgotten")
	}
	v = k.peek()
	if !v.Allowed || v.Remaining() != 3 || v.Tiers[0].Refill != 0 {
		t.Fatalf("after a reset: %s", spell(v))
	}
	// The moment of a released send is kept for as long as the send would have been.
	at := k.now()
	if !k.release(k.admit()) {
		t.Fatal("not given back")
	}
	k.add(15_000)
	k.peek()
	k.set(at - 59_999)
	if v := k.peek(); v.At < at-at%10_000 && v.At < at-at%60_000 || !v.Allowed {
		t.Fatalf("at %d after a release at %d", v.At-start, at-start)
	}
}
