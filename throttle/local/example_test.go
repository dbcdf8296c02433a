package local_test

import (
	"context"
	"fmt"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// A first mail, a second one half a minute later, and one when the wait is over.
func Example() {
	disk, err := cache.Open(cache.DiskOptions{Dir: cache.Memory}) // or a directory
	if err != nil {
		fmt.Println(err)
		return
	}
	defer disk.Close()
	clock := int64(1_800_000_000_000)
	limiter, err := local.New(disk, local.Options{
		Policy: throttle.DefaultPolicy(),
		Now:    func() int64 { return clock },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()

	for _, pause := range []int64{0, 30_000, 30_000} {
		clock += pause
		v, err := limiter.Take(context.Background(), "alice@example.com", throttle.NewID())
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(v.Allowed, v.Limit, v.Wait)
	}
	// Output:
	// true minute 60000
	// false minute 30000
	// true minute 60000
}

// An admission is given back when its mail certainly never left.
func ExampleLimiter_Release() {
	disk, err := cache.Open(cache.DiskOptions{Dir: cache.Memory})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer disk.Close()
	limiter, err := local.New(disk, local.Options{Policy: throttle.DefaultPolicy()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()

	ctx, id := context.Background(), throttle.NewID()
	if _, err := limiter.Take(ctx, "alice@example.com", id); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(limiter.Release(ctx, "alice@example.com", id))
	v, err := limiter.Peek(ctx, "alice@example.com")
	fmt.Println(v.Allowed, err)
	// Output:
	// true <nil>
	// true <nil>
}

// What a health check asks: a limiter that is closed, or that has no room on its disk,
// admits nobody.
func ExampleLimiter_Ready() {
	disk, err := cache.Open(cache.DiskOptions{Dir: cache.Memory})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer disk.Close()
	limiter, err := local.New(disk, local.Options{Policy: throttle.DefaultPolicy()})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(limiter.Ready(context.Background()))
	limiter.Close()
	fmt.Println(limiter.Ready(context.Background()))
	// Output:
	// <nil>
	// asking the disk: the history is unavailable: the store is closed
}
