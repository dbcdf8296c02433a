package throttle_test

import (
	"context"
	"fmt"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// A mailbox's afternoon at a limiter that keeps its histories in memory. A program
// leaves Now out; here the clock is turned by hand.
func Example() {
	clock := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMilli()
	disk, err := cache.Open(cache.DiskOptions{Dir: cache.Memory})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer disk.Close()
	limiter, err := local.New(disk, local.Options{
		Policy: throttle.DefaultPolicy(),
		Now:    func() int64 { return clock },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()

	ctx, mailbox := context.Background(), "alice@example.com"
	say := func(doing string, v throttle.Verdict, err error) {
		if err != nil {
			fmt.Println(doing, err)
			return
		}
		fmt.Printf("%-14s allowed %-5v  limit %q  wait %d\n", doing, v.Allowed, v.Limit, v.Wait)
	}

	first := throttle.NewID()
	v, err := limiter.Take(ctx, mailbox, first)
	say("take", v, err)
	v, err = limiter.Take(ctx, mailbox, first) // the caller never got its answer
	say("the same again", v, err)

	clock += 15_000
	v, err = limiter.Take(ctx, mailbox, throttle.NewID())
	say("too early", v, err)
	clock = v.RetryAt()
	v, err = limiter.Peek(ctx, mailbox)
	say("peek", v, err)

	second := throttle.NewID()
	v, err = limiter.Take(ctx, mailbox, second)
	say("take", v, err)
	released, err := limiter.Release(ctx, mailbox, second) // the relay was down
	fmt.Println("release:", released, err)
	v, err = limiter.Peek(ctx, mailbox)
	say("peek", v, err)

	history, err := limiter.History(ctx, mailbox)
	fmt.Println("on record:", len(history), history[0].ID == first, err)
	cleared, err := limiter.Reset(ctx, mailbox) // the support desk helps
	fmt.Println("reset:", cleared, err)
	// Output:
	// take           allowed true   limit "minute"  wait 60000
	// the same again allowed true   limit "minute"  wait 60000
	// too early      allowed false  limit "minute"  wait 45000
	// peek           allowed true   limit ""  wait 0
	// take           allowed true   limit "minute"  wait 60000
	// release: true <nil>
	// peek           allowed true   limit ""  wait 0
	// on record: 1 true <nil>
	// reset: 1 <nil>
}
