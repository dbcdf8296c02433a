package cluster_test

import (
	"context"
	"fmt"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/meter"
)

// Two servers share one Redis: what one has let through, the other knows.
func Example() {
	server, stop := redistest.ForExample() // a Redis of its own
	defer stop()
	var limiters []throttle.Limiter
	for range 2 {
		store, err := redisstore.Open(redisstore.Options{URL: server.URL(), Timeout: 2 * time.Second})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer store.Close()
		limiter, err := cluster.New(store, throttle.DefaultPolicy())
		if err != nil {
			fmt.Println(err)
			return
		}
		limiters = append(limiters, limiter)
	}
	for _, limiter := range limiters {
		v, err := limiter.Take(context.Background(), "alice@example.com", throttle.NewID())
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(v.Allowed, v.Limit)
	}
	// Output:
	// true minute
	// false minute
}

// Meters count under names, on the connections of the store.
func ExampleMeters() {
	server, stop := redistest.ForExample()
	defer stop()
	store, err := redisstore.Open(redisstore.Options{URL: server.URL(), Timeout: 2 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	meters, err := cluster.NewMeters(store)
	if err != nil {
		fmt.Println(err)
		return
	}
	perHour, err := meter.NewFixedWindow(throttle.Tier{Name: "hour", Limit: 100, Window: time.Hour.Milliseconds()})
	if err != nil {
		fmt.Println(err)
		return
	}
	byAddress := meters.Limiter("client-ip", perHour)
	v, err := byAddress.Take(context.Background(), "192.0.2.1", throttle.NewID())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(v.Allowed, v.Tiers()[0].Remaining)
	// Output: true 99
}
