package local_test

import (
	"context"
	"fmt"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/idempotency/local"
)

// What could not be done is abandoned, and may be tried again under the same key.
func Example() {
	disk, err := cache.Open(cache.DiskOptions{Dir: cache.Memory}) // or a directory
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

	ctx, name := context.Background(), idempotency.Name{Caller: "website", Key: "8e03978e"}
	for _, status := range []int{503, 200, 200} {
		o, err := keeper.Begin(ctx, name, idempotency.Fingerprint{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(o.State)
		switch {
		case o.State != idempotency.Started:
			fmt.Println(" of", o.Answer.Status)
		case status == 200:
			kept, err := keeper.Finish(ctx, o.Lease, idempotency.Answer{Status: status})
			fmt.Println(", kept:", kept, err)
		default:
			freed, err := keeper.Abandon(ctx, o.Lease)
			fmt.Println(", freed:", freed, err)
		}
	}
	// Output:
	// started, freed: true <nil>
	// started, kept: true <nil>
	// replay of 200
}
