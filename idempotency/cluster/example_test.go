package cluster_test

import (
	"context"
	"fmt"
	"time"

	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/idempotency/cluster"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
)

// Two servers share one Redis: what one of them has done, the other answers.
func Example() {
	server, stop := redistest.ForExample() // a Redis of its own
	defer stop()
	var keepers []idempotency.Keeper
	for range 2 {
		store, err := redisstore.Open(redisstore.Options{URL: server.URL(), Timeout: 2 * time.Second})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer store.Close()
		keeper, err := cluster.New(store, idempotency.DefaultTerms())
		if err != nil {
			fmt.Println(err)
			return
		}
		keepers = append(keepers, keeper)
	}

	ctx := context.Background()
	name, body := idempotency.Name{Caller: "website", Key: "8e03978e"}, idempotency.Fingerprint{1}
	first, err := keepers[0].Begin(ctx, name, body)
	fmt.Println(first.State, err)
	second, err := keepers[1].Begin(ctx, name, body)
	fmt.Println(second.State, err)
	fmt.Println(keepers[0].Finish(ctx, first.Lease, idempotency.Answer{Status: 200, Body: []byte("sent")}))
	second, err = keepers[1].Begin(ctx, name, body)
	fmt.Println(second.State, string(second.Answer.Body), err)
	// Output:
	// started <nil>
	// in flight <nil>
	// true <nil>
	// replay sent <nil>
}
