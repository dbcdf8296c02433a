package memory_test

import (
	"fmt"
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/memory"
	"github.com/mailgate/mailgate/throttle/meter"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// What one view admits another still counts when the one counts it no more; and so it
// does when that could be swept to make room.
func TestAShorterViewForgetsNothingOfALonger(t *testing.T) {
	clock := clocktest.New(start)
	day := memory.NewTiers(throttletest.Policy(t, "day=3/24h"), memory.Options{Now: clock.Now})
	minute := day.With(throttletest.Policy(t, "minute=1/60s"))
	var first throttle.ID
	for i := range 4 {
		v, id := take(t, day, "key")
		if v.Allowed != (i < 2) {
			t.Fatalf("turn %d: the day admits %v", i, v.Allowed)
		}
		if i == 0 {
			first = id
		}
		clock.Add(120_000)
		if v, _ := take(t, minute, "key"); !v.Allowed {
			t.Fatalf("turn %d: the minute is denied", i)
		}
		clock.Add(120_000)
		for other := range 1000 { // wherever they are, they sweep what has expired
			take(t, minute, fmt.Sprint("new ", i, other))
		}
	}
	if n, _ := day.History(t.Context(), "key"); len(n) != 6 {
		t.Errorf("%d sends in a day, want 6", len(n))
	}
	if n, _ := minute.History(t.Context(), "key"); len(n) != 0 {
		t.Errorf("%d sends in a minute, want none", len(n))
	}
	// An id that the longer has on record is no second send, whoever is asked.
	if v, err := minute.Take(t.Context(), "key", first); !v.Allowed || err != nil {
		t.Errorf("taken again: %v, %v", v.Allowed, err)
	}
	if n, _ := day.History(t.Context(), "key"); len(n) != 6 {
		t.Errorf("%d sends in a day when one was taken again, want 6", len(n))
	}
	clock.Add(24 * 3_600_000)
	if v, _ := take(t, day, "key"); !v.Allowed {
		t.Error("denied a day after the last")
	}
}

// A view that is longer than the one it was made of makes both keep for as long.
func TestALongerViewIsKeptFor(t *testing.T) {
	clock := clocktest.New(start)
	minute := memory.NewTiers(throttletest.Policy(t, "minute=1/60s"), memory.Options{Keys: 1, Now: clock.Now})
	day := minute.With(throttletest.Policy(t, "day=1/24h"))
	take(t, minute, "key")
	clock.Add(120_000)
	refused(t, minute, "another") // no room: it still counts for the day
	if v, _ := take(t, day, "key"); v.Allowed {
		t.Error("admitted a second time in a day")
	}
}

// However many a short view admits, a history has no more sends than any policy can ask
// about.
func TestAHistoryOfManyViewsIsBounded(t *testing.T) {
	clock := clocktest.New(start)
	day := memory.NewTiers(throttletest.Policy(t, "day=1000/24h"), memory.Options{Now: clock.Now})
	second := day.With(throttletest.Policy(t, "second=1000/1s"))
	for range 3 * throttle.MaxLimit {
		clock.Add(2)
		if v, _ := take(t, second, "key"); !v.Allowed {
			t.Fatal("denied")
		}
	}
	if h, _ := day.History(t.Context(), "key"); len(h) != throttle.MaxLimit || h.Newest() != clock.Now() {
		t.Errorf("%d sends on record, the newest at %d; want %d until %d", len(h), h.Newest(), throttle.MaxLimit, clock.Now())
	}
	if v, _ := take(t, day, "key"); v.Allowed {
		t.Error("the day is not full")
	}
}

// hourly is a bucket with this room that drains at this rate.
func hourly(t testing.TB, limit, room int) meter.Meter {
	t.Helper()
	m, err := meter.NewTokenBucket(throttle.Tier{Name: "hour", Limit: limit, Window: 3_600_000}, room)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A bucket drains faster for one view than for another: it is kept for the slower.
func TestASlowerBucketIsKeptFor(t *testing.T) {
	clock := clocktest.New(start)
	for _, first := range []int{1, 3600} {
		l := memory.New(hourly(t, first, 2), memory.Options{Keys: 1, Now: clock.Now})
		slow, fast := l.With(hourly(t, 1, 2)), l.With(hourly(t, 3600, 2))
		take(t, slow, "key")
		take(t, fast, "key")
		clock.Add(10_000) // by the faster rate both have drained
		refused(t, fast, "another")
		if v, _ := take(t, slow, "key"); v.Allowed {
			t.Errorf("made of %d an hour: a third is admitted in an hour", first)
		}
		clock.Add(2 * 3_600_000)
		take(t, fast, "another")
	}
}

// What a fast view settles counts for shorter by the slow one, too: then its place is free.
func TestASlowerBucketIsKeptForNoLonger(t *testing.T) {
	const hour = 3_600_000
	clock := clocktest.New(start)
	slow := memory.New(hourly(t, 1, 3), memory.Options{Keys: 1, Now: clock.Now})
	fast := slow.With(hourly(t, 3600, 3))
	for range 3 {
		take(t, slow, "key")
	}
	clock.Add(hour)
	refused(t, slow, "another") // that was when it was due: now it is in three hours
	take(t, fast, "key")        // by whose rate all had drained
	clock.Add(hour - 1)
	refused(t, slow, "another")
	clock.Add(1)
	take(t, slow, "another")
}

// So it is for a view that is made when the key is on record already.
func TestAViewMadeLaterIsKeptFor(t *testing.T) {
	a60 := func(limit int) meter.Meter {
		m, err := meter.NewTokenBucket(throttle.Tier{Name: "minute", Limit: limit, Window: 60_000}, 60)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	clock := clocktest.New(start)
	o := memory.Options{Keys: 1, Now: clock.Now}
	bucket, tiers := memory.New(a60(60), o), memory.NewTiers(throttletest.Policy(t, "minute=60/60s"), o)
	for name, tt := range map[string]struct {
		before throttle.Limiter
		later  func() throttle.Limiter
		left   int
	}{
		"bucket": {bucket, func() throttle.Limiter { return bucket.With(a60(6)) }, 6},
		"tiers":  {tiers, func() throttle.Limiter { return tiers.With(throttletest.Policy(t, "hour=66/1h")) }, 6},
	} {
		clock.Set(start)
		for range 60 {
			take(t, tt.before, "key")
		}
		clock.Add(1000)
		later := tt.later()
		clock.Add(60_000)
		refused(t, tt.before, "another")
		if v, err := later.Peek(t.Context(), "key"); err != nil || v.Tiers()[0].Remaining != tt.left {
			t.Errorf("%s: %v, %v; want %d left", name, v.Tiers(), err, tt.left)
		}
	}
}

func TestAMeterThatCountsNothing(t *testing.T) {
	usable := memory.New(bucket(t), memory.Options{})
	for name, open := range map[string]func(meter.Meter){
		"new":  func(m meter.Meter) { memory.New(m, memory.Options{}) },
		"with": func(m meter.Meter) { usable.With(m) },
	} {
		for _, m := range []meter.Meter{nil, meter.FixedWindow{}, meter.SlidingWindow{}, meter.TokenBucket{}, meter.LeakyBucket{}} {
			t.Run(fmt.Sprintf("%s/%T", name, m), func(t *testing.T) {
				defer func() {
					if said := recover(); said != "memory: a limiter needs a meter that one of package meter's New functions made" {
						t.Errorf("%v", said)
					}
				}()
				open(m)
			})
		}
	}
}
