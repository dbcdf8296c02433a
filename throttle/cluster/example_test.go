package cluster_test

import (
	"context"
	"fmt"

	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/redis/go-redis/v9"
)

// The example starts a Redis server of its own; a program has one already.
func Example() {
	server, stop := redistest.ForExample()
	defer stop()

	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	limiter, err := cluster.New(client, "myapp", throttle.DefaultPolicy())
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		v, err := limiter.Take(context.Background(), "alice@example.com", throttle.NewID())
		fmt.Printf("allowed %v by %q, %d left today, %v\n", v.Allowed, v.Limit, v.Tiers[2].Remaining, err)
	}
	// Output:
	// allowed true by "minute", 9 left today, <nil>
	// allowed false by "minute", 9 left today, <nil>
}
