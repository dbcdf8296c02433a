package idempotency_test

import (
	"context"
	"fmt"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/idempotency/local"
)

// A request is sent, then again after its answer was lost, and then its key is used for
// another one.
func Example() {
	disk, err := cache.Open(cache.DiskOptions{Dir: cache.Memory})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer disk.Close()
	keeper, err := local.New(disk, local.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer keeper.Close()
	fingerprints, err := idempotency.NewFingerprinter([]byte("sixteen bytes of chance, or more"))
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	handle := func(field, body string) string {
		key, err := idempotency.ParseKey(field)
		if err != nil {
			return "400 " + err.Error()
		}
		name := idempotency.Name{Caller: "website", Key: key}
		o, err := keeper.Begin(ctx, name, fingerprints.Of("POST /send-code", []byte(body)))
		switch {
		case err != nil:
			return "503 " + err.Error()
		case o.State == idempotency.Started:
			answer := idempotency.Answer{Status: 200, Body: []byte("sent to " + body)}
			if _, err := keeper.Finish(ctx, o.Lease, answer); err != nil {
				return "503 " + err.Error()
			}
			return string(answer.Body)
		case o.State == idempotency.Replay:
			return string(o.Answer.Body) + ", as said before"
		}
		return o.State.String()
	}
	fmt.Println(handle(`"8e03978e"`, "alice"))
	fmt.Println(handle(`"8e03978e"`, "alice"))
	fmt.Println(handle(`"8e03978e"`, "bob"))
	// Output:
	// sent to alice
	// sent to alice, as said before
	// mismatch
}

func ExampleParseKey() {
	for _, field := range []string{`"8e03978e"`, `8e03978e`, `"one", "two"`} {
		fmt.Println(idempotency.ParseKey(field))
	}
	// Output:
	// 8e03978e <nil>
	// 8e03978e <nil>
	//  an idempotency key is 1 to 255 visible ASCII characters, in double quotes
}

// A process that ends in between leaves a lease, which ends by itself. What it would have
// answered comes too late once somebody else has begun.
func ExampleRecord() {
	terms := idempotency.DefaultTerms()
	first := idempotency.Lease{Token: idempotency.NewToken()}
	second := idempotency.Lease{Token: idempotency.NewToken()}

	record, o := idempotency.Record{}.Begin(first, 0, terms)
	fmt.Println(o.State)
	record, o = record.Begin(second, 59_999, terms)
	fmt.Println(o.State, o.RetryAfter)
	record, o = record.Begin(second, 60_000, terms)
	fmt.Println(o.State)
	_, kept := record.Finish(first, idempotency.Answer{Status: 200}, 60_001, terms)
	fmt.Println(kept)
	// Output:
	// started
	// in flight 1
	// started
	// false
}
