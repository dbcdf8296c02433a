package throttle_test

import (
	"context"
	"fmt"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// A first mail, a second one too early, one at the end of the wait, and one that never left.
// A program leaves the clock out; here it is moved by hand.
func Example() {
	clock := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMilli()
	now := func() int64 { return clock }
	store, err := cache.Open(cache.Options{Now: now})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	limiter := local.New(store.Table("mailboxes"), throttle.DefaultPolicy())
	ctx, mailbox := context.Background(), "alice@example.com"
	take := func() throttle.Admission {
		v, err := limiter.Take(ctx, mailbox)
		fmt.Printf("allowed %-5v limit %q wait %d %v\n", v.Allowed, v.Limit, v.Wait, err)
		return v.Admission
	}
	take()
	clock += 15_000
	take()
	clock += 45_000
	last := take()

	released, err := limiter.Release(ctx, mailbox, last)
	fmt.Println("released", released, err)
	v, err := limiter.Peek(ctx, mailbox)
	for _, t := range v.Tiers {
		fmt.Printf("%s: %d of %d left, more in %d ms\n", t.Name, t.Remaining, t.Limit, t.Refill)
	}
	fmt.Println(v.Allowed, err)
	// Output:
	// allowed true  limit "minute" wait 60000 <nil>
	// allowed false limit "minute" wait 45000 <nil>
	// allowed true  limit "minute" wait 60000 <nil>
	// released true <nil>
	// minute: 1 of 1 left, more in 0 ms
	// hour: 4 of 5 left, more in 3540000 ms
	// day: 9 of 10 left, more in 86340000 ms
	// true <nil>
}

// A counter: sixty requests a minute, twenty of them at once.
func ExampleNewTokenBucket() {
	bucket, err := throttle.NewTokenBucket(throttle.Tier{Name: "requests", Limit: 60, Window: time.Minute}, 20)
	if err != nil {
		fmt.Println(err)
		return
	}
	v, err := local.Memory(bucket).Take(context.Background(), "192.0.2.1")
	fmt.Println(v.Allowed, v.Remaining(), err)
	// Output: true 19 <nil>
}

// Five sends just before a minute of the clock ends and five just after it, at a limit of five
// in a minute: how many each algorithm admits.
func Example_edge() {
	tier := throttle.Tier{Name: "minute", Limit: 5, Window: time.Minute}
	fixed, _ := throttle.NewFixedWindow(tier)
	sliding, _ := throttle.NewSlidingWindow(tier, 0)
	token, _ := throttle.NewTokenBucket(tier, 0)
	leaky, _ := throttle.NewLeakyBucket(tier, 4)
	policy, _ := throttle.NewPolicy(tier)
	for _, a := range []throttle.Algorithm{policy, sliding, fixed, token, leaky} {
		var state []byte
		admitted := map[int64]int{}
		for _, at := range []int64{59_000, 61_000} {
			for range 5 {
				next, v := a.Take(state, throttle.Admission{ID: throttle.NewID(), At: at})
				if state = next; v.Allowed {
					admitted[at]++
				}
			}
		}
		fmt.Println(admitted[59_000], "and", admitted[61_000], "by", a)
	}
	// Output:
	// 5 and 0 by minute=5/60s
	// 5 and 0 by sliding-window minute=5/60s in parts of 1000 ms
	// 5 and 5 by fixed-window minute=5/60s
	// 5 and 0 by token-bucket minute=5/60s, bursts of 5
	// 5 and 0 by leaky-bucket minute=5/60s, a queue of 4
}

func ExampleParsePolicy() {
	policy, err := throttle.ParsePolicy("hour=3/1h, burst=1/1m30s")
	fmt.Println(policy, err)
	_, err = throttle.ParsePolicy("minute=6/60s,hour=5/1h")
	fmt.Println(err)
	// Output:
	// burst=1/90s,hour=3/1h <nil>
	// tier minute: 6 sends in 60s can never be reached while tier hour allows 5 in 1h
}
