package local_test

import (
	"context"
	"fmt"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/meter"
)

// A provider's daily quota, and what an operator does who has bought a larger one: what
// was sent today still counts.
func ExampleMeters() {
	disk, err := cache.Open(cache.DiskOptions{Dir: cache.Memory}) // or a directory
	if err != nil {
		fmt.Println(err)
		return
	}
	defer disk.Close()
	meters, err := local.NewMeters(disk, local.MetersOptions{
		Now: func() int64 { return 1_800_000_000_000 },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer meters.Close()

	for _, limit := range []int{2, 3} {
		quota, err := meter.NewFixedWindow(throttle.Tier{Name: "day", Limit: limit, Window: (24 * time.Hour).Milliseconds()})
		if err != nil {
			fmt.Println(err)
			return
		}
		limiter := meters.Limiter("provider-quota", quota)
		for {
			v, err := limiter.Take(context.Background(), "mail.example.com", throttle.NewID())
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println(v.Allowed, v.Tiers()[0])
			if !v.Allowed {
				break
			}
		}
	}
	// Output:
	// true day: 1 of 2 left
	// true day: 0 of 2 left, 57600000 ms to wait
	// false day: 0 of 2 left, 57600000 ms to wait
	// true day: 0 of 3 left, 57600000 ms to wait
	// false day: 0 of 3 left, 57600000 ms to wait
}

// Other tiers for addresses of the network, in the same memory and on the same disk.
func ExampleLimiter_Tiers() {
	disk, err := cache.Open(cache.DiskOptions{Dir: cache.Memory})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer disk.Close()
	mailbox, err := local.New(disk, local.Options{Policy: throttle.DefaultPolicy()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer mailbox.Close()
	policy, err := throttle.ParsePolicy("hour=20/1h")
	if err != nil {
		fmt.Println(err)
		return
	}

	network := mailbox.Tiers("network", policy)
	v, err := network.Take(context.Background(), "192.0.2.0/24", throttle.NewID())
	fmt.Println(v.Allowed, v.Tiers()[0].Remaining, err)
	// Output:
	// true 19 <nil>
}
