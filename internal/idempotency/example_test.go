package idempotency_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/idempotency"
	"github.com/mailgate/mailgate/internal/keyed"
)

func Example() {
	store, err := cache.Open(cache.Options{}) // in memory; with a Dir also on disk
	if err != nil {
		panic(err)
	}
	defer func() { _ = store.Close() }()
	requests := idempotency.New(keyed.Local(store.Table("requests")), 60_000)
	fingerprint := func(body string) idempotency.Fingerprint {
		mac := hmac.New(sha256.New, []byte("at least sixteen random bytes"))
		mac.Write([]byte("POST /send-code " + body))
		return idempotency.Fingerprint(mac.Sum(nil)[:16])
	}

	send := func(body string) string {
		ctx := context.Background()
		name := idempotency.Name{Caller: "shop", Key: "order-17"}
		o, err := requests.Begin(ctx, name, fingerprint(body))
		switch {
		case err != nil:
			return "503 storage unavailable"
		case o.State == idempotency.Replay:
			return string(o.Answer.Body) + ", replayed"
		case o.State == idempotency.Mismatch:
			return "422 key used for a different request"
		case o.State != idempotency.Started:
			return "409 in progress, or 504 unknown"
		}
		if ok, err := requests.HandOver(ctx, o.Lease); err != nil || !ok {
			return "503 nothing was sent"
		}
		answer := idempotency.Answer{Status: 200, Body: []byte("200 sent")} // the mail leaves here
		if _, err := requests.Finish(ctx, o.Lease, answer); err != nil {
			return "200 sent, but a retry will be told that the status is unknown"
		}
		return "200 sent"
	}
	fmt.Println(send(`{"email":"alice@example.com"}`))
	fmt.Println(send(`{"email":"alice@example.com"}`))
	fmt.Println(send(`{"email":"bob@example.com"}`))
	// Output:
	// 200 sent
	// 200 sent, replayed
	// 422 key used for a different request
}
