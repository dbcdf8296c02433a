package cluster_test

import (
	"context"
	"fmt"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/redis/go-redis/v9"
)

func Example() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer client.Close()
	limiter, err := cluster.New(client, "myapp", throttle.DefaultPolicy())
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		v, err := limiter.Take(context.Background(), "alice@example.com")
		fmt.Printf("allowed %v by %q, %d left today, %v\n", v.Allowed, v.Limit, v.Tiers[2].Remaining, err)
	}
	// Prints
	//   allowed true by "minute", 9 left today, <nil>
	//   allowed false by "minute", 9 left today, <nil>
}
