package memory_test

import (
	"context"
	"fmt"
	"time"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/memory"
	"github.com/mailgate/mailgate/throttle/meter"
)

// A visitor's address may ask twice in a minute. A program leaves Now out; here the clock
// is turned by hand.
func Example() {
	clock := int64(1_800_000_000_000)
	minute, err := meter.NewSlidingWindow(throttle.Tier{Name: "minute", Limit: 2, Window: time.Minute.Milliseconds()}, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	visitors := memory.New(minute, memory.Options{Now: func() int64 { return clock }})

	for range 3 {
		v, err := visitors.Take(context.Background(), "192.0.2.1", throttle.NewID())
		fmt.Println(v.Allowed, v.Wait, err)
		clock += 20_000
	}
	// Output:
	// true 0 <nil>
	// true 40999 <nil>
	// false 20999 <nil>
}

// Requests that nobody repeats or gives back are counted without an id.
func ExampleLimiter_Count() {
	clock := int64(1_800_000_000_000)
	second, err := meter.NewTokenBucket(throttle.Tier{Name: "second", Limit: 10, Window: time.Second.Milliseconds()}, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	visitors := memory.New(second, memory.Options{Now: func() int64 { return clock }})

	for range 3 {
		r, err := visitors.Count(context.Background(), "192.0.2.1")
		fmt.Println(r.Allowed, r.Remaining, r.Wait, err)
		clock += 10
	}
	// Output:
	// true 1 0 <nil>
	// true 0 90 <nil>
	// false 0 80 <nil>
}

func ExampleNewTiers() {
	clock := int64(1_800_000_000_000)
	mailboxes := memory.NewTiers(throttle.DefaultPolicy(), memory.Options{Now: func() int64 { return clock }})

	for range 2 {
		v, err := mailboxes.Take(context.Background(), "alice@example.com", throttle.NewID())
		fmt.Println(v.Allowed, v.Limit, v.Wait, err)
	}
	// Output:
	// true minute 60000 <nil>
	// false minute 60000 <nil>
}

// A limit is changed while the program runs, and what was sent still counts.
func ExampleLimiter_With() {
	clock := int64(1_800_000_000_000)
	hour := func(limit int) meter.Meter {
		m, err := meter.NewFixedWindow(throttle.Tier{Name: "hour", Limit: limit, Window: time.Hour.Milliseconds()})
		if err != nil {
			panic(err)
		}
		return m
	}
	callers := memory.New(hour(1), memory.Options{Now: func() int64 { return clock }})
	larger := callers.With(hour(3))
	for _, l := range []*memory.Limiter{callers, callers, larger} {
		v, err := l.Take(context.Background(), "web", throttle.NewID())
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(v.Allowed, v.Tiers()[0])
	}
	// Output:
	// true hour: 0 of 1 left, 3600000 ms to wait
	// false hour: 0 of 1 left, 3600000 ms to wait
	// true hour: 1 of 3 left
}

// A request came to nothing, and its place is there for the next.
func ExampleLimiter_Release() {
	hour, err := meter.NewFixedWindow(throttle.Tier{Name: "hour", Limit: 1, Window: time.Hour.Milliseconds()})
	if err != nil {
		fmt.Println(err)
		return
	}
	callers := memory.New(hour, memory.Options{})
	ctx, id := context.Background(), throttle.NewID()
	v, err := callers.Take(ctx, "web", id)
	fmt.Println(v.Allowed, err)
	fmt.Println(callers.Release(ctx, "web", id))
	fmt.Println(callers.Release(ctx, "web", id)) // there is nothing to give back any more
	v, err = callers.Take(ctx, "web", throttle.NewID())
	fmt.Println(v.Allowed, err)
	// Output:
	// true <nil>
	// true <nil>
	// false <nil>
	// true <nil>
}
