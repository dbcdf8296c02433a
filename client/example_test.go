package client_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mailgate/mailgate/client"
)

// The handler behind a form that asks for a code.
func Example() {
	server := theServer() // a mailgate with a test relay
	gate, err := client.New(server.URL, "Hush-7f3b-9d21-c460")
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		sent, err := gate.Send(context.Background(), client.Mail{Email: "bob@example.com"})
		var limit *client.LimitError
		switch {
		case errors.As(err, &limit):
			fmt.Println("wait:", limit.Rule, limit.Limit, limit.Wait > 0)
		case err != nil:
			fmt.Println(err)
		default:
			fmt.Println("sent, next one in", sent.Wait)
		}
	}
	// Output:
	// sent, next one in 1m0s
	// wait: mailbox minute true
}

func ExampleClient_Verify() {
	server := theServer()
	gate, _ := client.New(server.URL, "Hush-7f3b-9d21-c460")
	ctx := context.Background()
	if _, err := gate.Send(ctx, client.Mail{Email: "dan@example.com"}); err != nil {
		fmt.Println(err)
		return
	}
	code := server.Code("dan@example.com") // as the visitor types it
	for range 2 {
		err := gate.Verify(ctx, client.Guess{Email: "dan@example.com", Code: code})
		var problem *client.APIError
		switch {
		case err == nil:
			fmt.Println("right")
		case errors.As(err, &problem) && problem.Kind == client.CodeIncorrect:
			fmt.Println("wrong, guesses left:", problem.GuessesLeft)
		case errors.As(err, &problem) && problem.Kind == client.CodeExpired:
			fmt.Println("used or expired")
		default:
			fmt.Println(err)
		}
	}
	// Output:
	// right
	// used or expired
}

// An action is anything else to limit. A take that came to nothing is refunded.
func ExampleClient_Take() {
	gate, _ := client.New(theServer().URL, "Hush-7f3b-9d21-c460")
	ctx := context.Background()
	taken, err := gate.Take(ctx, "reply", "user 4711")
	fmt.Println(taken.Wait, err)
	released, err := gate.Release(ctx, "reply", "user 4711", taken.ID)
	fmt.Println(released, err)
	allowed, _, err := gate.Peek(ctx, "reply", "user 4711")
	fmt.Println(allowed, err)
	// Output:
	// 1m0s <nil>
	// true <nil>
	// true <nil>
}
