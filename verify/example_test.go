package verify_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/mailgate/mailgate/cache"
	throttlelocal "github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/verify"
	"github.com/mailgate/mailgate/verify/local"
)

func ExampleNewCode() {
	code, err := verify.NewCode(rand.Reader)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(code), "digits")
	// Output: 6 digits
}

func ExampleParseCode() {
	for _, typed := range []string{" 482 913\n", "４８２９１３", "48291"} {
		fmt.Println(verify.ParseCode(typed))
	}
	// Output:
	// 482913 <nil>
	// 482913 <nil>
	//  a code is six digits
}

func ExampleCodes() {
	now, hash := int64(1_800_000_000_000), verify.Hash([]byte("the code's hash."))
	codes := verify.Codes{}.Add(hash, now, now+600_000)

	result, _ := codes.Check(hash, now+599_999)
	fmt.Println(result)
	result, _ = codes.Check(hash, now+600_000)
	fmt.Println(result)
	// Output:
	// correct
	// expired
}

// A code is mailed, and comes back after a wrong one.
func ExampleDesk() {
	desk, closing, err := openDesk()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer closing()

	ctx, alice := context.Background(), verify.Recipient{Mailbox: "alice@example.com", Address: "Alice@example.com"}
	code, err := desk.Issue(ctx, alice) // and mail it
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, typed := range []string{"000000", code, code} {
		outcome, err := desk.Verify(ctx, alice, typed)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(outcome.Result, outcome.AttemptsLeft)
	}
	// Output:
	// incorrect 4
	// correct 0
	// expired 0
}

// openDesk opens a desk that keeps everything in memory.
func openDesk() (desk *verify.Desk, closing func(), err error) {
	disk, err := cache.Open(cache.DiskOptions{Dir: cache.Memory})
	if err != nil {
		return nil, nil, err
	}
	book, err := local.New(disk, local.Options{})
	if err != nil {
		return nil, nil, err
	}
	guesses, err := throttlelocal.New(disk, throttlelocal.Options{Policy: verify.DefaultGuesses(), Name: "guesses"})
	if err != nil {
		return nil, nil, err
	}
	hasher, err := verify.NewHasher([]byte("sixteen bytes of chance, or more"))
	if err != nil {
		return nil, nil, err
	}
	desk, err = verify.NewDesk(verify.Options{
		Hasher: hasher, Book: book, Guesses: guesses,
		Random: strings.NewReader("\x07\x5e\x61"), // the default is better
	})
	return desk, func() { book.Close(); guesses.Close(); disk.Close() }, err
}
