package mailer_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mailgate/mailgate/mailer"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

func ExampleParseRelayURL() {
	relay, err := mailer.ParseRelayURL("smtp://acme:s%3Acret@mail.example.com")
	fmt.Println(relay, err)
	_, err = mailer.ParseRelayURL("smtp://acme:secret@mail.example.com?tls=none")
	fmt.Println(err)
	// Output:
	// smtp://mail.example.com:587 <nil>
	// relay URL: a password would cross the network in the clear; use TLS or leave it out
}

func ExampleRelays_Send() {
	box, err := sandbox.Start(sandbox.Options{}) // stands in for your relay
	if err != nil {
		fmt.Println(err)
		return
	}
	defer box.Close()
	relay, err := mailer.ParseRelayURL(box.URL())
	if err != nil {
		fmt.Println(err)
		return
	}
	relays, err := mailer.NewRelays([]mailer.RelayURL{relay}, mailer.Options{Deadline: 10 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer relays.Close(context.Background())

	receipt, err := relays.Send(context.Background(), mailer.Message{
		ID:    "<1@acme.example>",
		From:  "no-reply@acme.example",
		To:    "alice@example.com",
		Bytes: []byte("Subject: your code\r\n\r\n123456\r\n"),
	})
	fmt.Println(receipt.Reply.Code, receipt.Reply.Message, err)
	// Output: 250 kept as 1 <nil>
}

// What a failed send means for whoever counts sends.
func ExampleSendError() {
	judge := func(err error) string {
		failure, ok := errors.AsType[*mailer.SendError](err)
		switch {
		case errors.Is(err, mailer.ErrBusy):
			return "give it back: too many are waiting"
		case ok && failure.Outcome == mailer.Unavailable:
			return "give it back: the mail never left"
		case ok && failure.Outcome == mailer.Rejected:
			return "keep the charge: " + failure.Reply.String()
		case ok && failure.Outcome == mailer.Unknown:
			return "keep the charge, never send it again"
		}
		return "a fault of our own"
	}
	fmt.Println(judge(&mailer.SendError{Outcome: mailer.Rejected, Reply: &mailer.Reply{Code: 550, Enhanced: "5.1.1"}}))
	fmt.Println(judge(&mailer.SendError{Outcome: mailer.Unknown}))
	fmt.Println(judge(&mailer.BusyError{RetryAfter: time.Second}))
	// Output:
	// keep the charge: 550 5.1.1
	// keep the charge, never send it again
	// give it back: too many are waiting
}
