package meter_test

import (
	"fmt"
	"time"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// noon is an ordinary moment. A program hands in clock.Now().
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMilli()

func ExampleFixedWindow() {
	// A relay's provider counts by the day, and so do we.
	day, err := meter.NewFixedWindow(throttle.Tier{Name: "day", Limit: 2, Window: (24 * time.Hour).Milliseconds()})
	if err != nil {
		fmt.Println(err)
		return
	}
	var s meter.State
	for range 3 {
		r, _ := day.Take(&s, throttle.NewID(), noon)
		fmt.Println(r.Allowed, time.UnixMilli(r.Clock+r.Wait).UTC().Format(time.TimeOnly))
	}
	// Output:
	// true 12:00:00
	// true 00:00:00
	// false 00:00:00
}

func ExampleSlidingWindow() {
	// A visitor's address, by second.
	visitor, err := meter.NewSlidingWindow(throttle.Tier{Name: "minute", Limit: 2, Window: time.Minute.Milliseconds()}, 60)
	if err != nil {
		fmt.Println(err)
		return
	}
	var s meter.State
	for _, second := range []int64{0, 20, 40, 61} {
		r, _ := visitor.Take(&s, throttle.NewID(), noon+second*1000)
		fmt.Println(second, r.Allowed, r.Wait)
	}
	// Output:
	// 0 true 0
	// 20 true 40999
	// 40 false 20999
	// 61 true 19999
}

func ExampleTokenBucket() {
	// A caller may send one a second, and three at once after a pause.
	caller, err := meter.NewTokenBucket(throttle.Tier{Name: "second", Limit: 1, Window: time.Second.Milliseconds()}, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	var s meter.State
	for _, ms := range []int64{0, 0, 0, 0, 1000, 1500} {
		r, _ := caller.Take(&s, throttle.NewID(), noon+ms)
		fmt.Println(ms, r.Allowed, r.Remaining, r.Wait)
	}
	// Output:
	// 0 true 2 0
	// 0 true 1 0
	// 0 true 0 1000
	// 0 false 0 1000
	// 1000 true 0 1000
	// 1500 false 0 500
}

func ExampleLeakyBucket() {
	// A relay wants ten a second at most, evenly. Three may wait for their turns.
	relay, err := meter.NewLeakyBucket(throttle.Tier{Name: "second", Limit: 10, Window: time.Second.Milliseconds()}, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	var s meter.State
	for range 5 {
		r, _ := relay.Take(&s, throttle.NewID(), noon)
		fmt.Println(r.Allowed, r.Delay, r.Wait)
	}
	// Output:
	// true 0 0
	// true 100 0
	// true 200 0
	// true 300 100
	// false 0 100
}

// Five in the last second of a minute and five in the first of the next: a fixed window
// lets all ten through within two seconds. Nothing else here does.
func Example_edge() {
	minute := throttle.Tier{Name: "minute", Limit: 5, Window: time.Minute.Milliseconds()}
	fixed, err1 := meter.NewFixedWindow(minute)
	sliding, err2 := meter.NewSlidingWindow(minute, 0)
	token, err3 := meter.NewTokenBucket(minute, 0)
	leaky, err4 := meter.NewLeakyBucket(minute, 4)
	tiers, err5 := throttle.NewPolicy(minute)
	for _, err := range []error{err1, err2, err3, err4, err5} {
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	burst := func(admit func(now int64) bool) (n int) {
		for i := range int64(10) {
			if admit(noon - 1000 + i/5*1000) {
				n++
			}
		}
		return n
	}
	var h throttle.History
	fmt.Println(burst(func(now int64) bool {
		v := throttle.Decide(tiers, h, now)
		if v.Allowed {
			h = h.With(tiers, throttle.NewID(), now)
		}
		return v.Allowed
	}), "by the tiers", tiers)
	for _, m := range []meter.Meter{fixed, sliding, token, leaky} {
		var s meter.State
		fmt.Println(burst(func(now int64) bool { v, _ := m.Take(&s, throttle.NewID(), now); return v.Allowed }), "by", m)
	}
	// Output:
	// 5 by the tiers minute=5/60s
	// 10 by fixed-window minute=5/60s
	// 5 by sliding-window minute=5/60s in 60 parts
	// 5 by token-bucket minute=5/60s, bursts of 5
	// 5 by leaky-bucket minute=5/60s, a queue of 4
}
