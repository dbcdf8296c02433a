package relay_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

func ExampleParseURL() {
	url, err := relay.ParseURL("smtp://acme:s%3Acret@mail.example.com")
	fmt.Println(url, err)
	_, err = relay.ParseURL("smtp://acme:secret@mail.example.com?tls=none")
	fmt.Println(err)
	// Output:
	// smtp://mail.example.com:587 <nil>
	// relay URL: a password would cross the network in the clear; use TLS or leave it out
}

func ExampleRelays_Begin() {
	ctx := context.Background()
	box, err := sandbox.Start(sandbox.Options{}) // stands in for your relay
	if err != nil {
		fmt.Println(err)
		return
	}
	defer box.Close()
	url, _ := relay.ParseURL(box.URL())
	relays, err := relay.New([]relay.URL{url}, relay.Options{Deadline: 10 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer relays.Close(ctx)

	from, _ := address.Parse("no-reply@acme.example", address.Identity{})
	to, _ := address.Parse("alice@example.com", address.Identity{})
	tx, err := relays.Begin(ctx, from, to)
	if err != nil {
		fmt.Println(err) // the mail never left, or was refused for good
		return
	}
	defer tx.Abort() // does nothing after Commit
	// The mail may leave from here on: note that where it must be known after a crash.
	receipt, err := tx.Commit(ctx, []byte("Subject: your code\r\n\r\n123456\r\n"))
	fmt.Println(receipt.Reply.Code, err)
	// Output: 250 <nil>
}

// What a failed send means for its charge.
func ExampleError() {
	charge := func(err error) string {
		failure, ok := errors.AsType[*relay.Error](err)
		if !ok {
			return "refund: an internal fault"
		}
		switch failure.Outcome {
		case relay.Busy, relay.Unavailable:
			return "refund: the mail never left"
		case relay.Rejected:
			return "keep: " + failure.Reply.String()
		}
		return "keep, and never send it again"
	}
	fmt.Println(charge(&relay.Error{Outcome: relay.Rejected, Reply: &relay.Reply{Code: 550, Enhanced: "5.1.1"}}))
	fmt.Println(charge(&relay.Error{Outcome: relay.Unknown}))
	fmt.Println(charge(&relay.Error{Outcome: relay.Busy, RetryAfter: time.Second}))
	// Output:
	// keep: 550 5.1.1
	// keep, and never send it again
	// refund: the mail never left
}
