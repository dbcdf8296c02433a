package local_test

import (
	"context"
	"fmt"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/verify"
	"github.com/mailgate/mailgate/verify/local"
)

func Example() {
	disk, err := cache.Open(cache.DiskOptions{Dir: cache.Memory}) // or a directory
	if err != nil {
		fmt.Println(err)
		return
	}
	defer disk.Close()
	book, err := local.New(disk, local.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer book.Close()
	hasher, err := verify.NewHasher([]byte("sixteen bytes of chance, or more"))
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx, mailbox := context.Background(), "alice@example.com"
	alice := verify.Recipient{Mailbox: mailbox, Address: mailbox}
	if err := book.Add(ctx, mailbox, hasher.Hash(alice, "482913"), verify.DefaultLifetime); err != nil {
		fmt.Println(err)
		return
	}
	for _, code := range []string{"482914", "482913", "482913"} {
		fmt.Println(book.Check(ctx, mailbox, hasher.Hash(alice, code)))
	}
	// Output:
	// incorrect <nil>
	// correct <nil>
	// expired <nil>
}
