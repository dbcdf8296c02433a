package verify_test

import (
	"context"
	"fmt"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/verify"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

func Example() {
	store, err := cache.Open(cache.Options{}) // in memory; with a Dir also on disk
	if err != nil {
		panic(err)
	}
	defer func() { _ = store.Close() }()
	guesses, err := throttle.ParsePolicy("ten-minutes=5/10m,day=20/24h")
	if err != nil {
		panic(err)
	}
	codes, err := verify.New(verify.Options{
		Store:   keyed.Local(store.Table("codes")),
		Secret:  []byte("at least sixteen random bytes"),
		Guesses: local.New(store.Table("guesses"), guesses),
	})
	if err != nil {
		panic(err)
	}

	ctx := context.Background()
	to := verify.Recipient{Mailbox: "alice@example.com", Address: "alice@example.com", Purpose: "sign-up"}
	code, err := codes.Issue(ctx, to) // goes into the mail
	if err != nil {
		panic(err)
	}
	for range 2 {
		outcome, err := codes.Verify(ctx, to, code)
		fmt.Println(outcome.Result == verify.Correct, err)
	}
	// Output:
	// true <nil>
	// false <nil>
}
