package cluster_test

import (
	"context"
	"fmt"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/verify"
	"github.com/mailgate/mailgate/verify/cluster"
)

// Two servers share one Redis: a code that one has mailed is right at the other, once.
func Example() {
	server, stop := redistest.ForExample() // a Redis of its own
	defer stop()
	ctx := context.Background()
	var books []verify.Book
	for range 2 {
		store, err := redisstore.Open(redisstore.Options{URL: server.URL(), Timeout: 2 * time.Second})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer store.Close()
		books = append(books, cluster.New(store))
	}
	code := verify.Hash{1}
	fmt.Println(books[0].Add(ctx, "alice@example.com", code, verify.DefaultLifetime))
	for range 2 {
		fmt.Println(books[1].Check(ctx, "alice@example.com", code))
	}
	// Output:
	// <nil>
	// correct <nil>
	// expired <nil>
}
