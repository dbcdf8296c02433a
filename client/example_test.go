package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mailgate/mailgate/client"
)

// The handler behind a form that says "send me a code".
func Example() {
	mailgate := openGate(nil) // a mailgate of this example's own
	defer mailgate.Close()

	gate, err := client.New(mailgate.URL, "Hush-7f3b-9d21-c460", client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		sent, err := gate.SendCode(context.Background(), client.Send{Email: "alice@example.com"})
		var wait *client.Wait
		switch {
		case errors.As(err, &wait):
			fmt.Printf("not yet: limit %s, for %v\n", wait.Limit, wait.Wait)
		case err != nil:
			fmt.Println(err)
		default:
			fmt.Println("mailed; the next one in", sent.Wait)
		}
	}
	// Output:
	// mailed; the next one in 1m0s
	// not yet: limit minute, for 1m0s
}

// What to tell a visitor who cannot be mailed.
func ExampleProblem() {
	mailgate := openGate(nil)
	defer mailgate.Close()
	gate, _ := client.New(mailgate.URL, "Hush-7f3b-9d21-c460", client.Options{})

	_, err := gate.SendCode(context.Background(), client.Send{Email: "alice@"})
	var problem *client.Problem
	if errors.As(err, &problem) && problem.Kind == client.Invalid {
		for _, field := range problem.Fields {
			fmt.Println(field.Detail)
		}
	}
	// Output:
	// Nothing stands after the @.
}

// A job that may run again sends under a key of its own.
func ExampleNewKey() {
	mailgate := openGate(nil)
	defer mailgate.Close()
	gate, _ := client.New(mailgate.URL, "Hush-7f3b-9d21-c460", client.Options{})

	job := client.Send{Email: "alice@example.com", Key: client.NewKey()} // kept with the job
	for range 2 {
		sent, err := gate.SendCode(context.Background(), job)
		fmt.Println(sent.Email, sent.Replayed, err)
	}
	fmt.Println(len(mailgate.box.List()), "mail")
	// Output:
	// alice@example.com false <nil>
	// alice@example.com true <nil>
	// 1 mail
}

func ExampleClient_VerifyCode() {
	mailgate := openGate(nil)
	defer mailgate.Close()
	gate, _ := client.New(mailgate.URL, "Hush-7f3b-9d21-c460", client.Options{})
	ctx := context.Background()
	if _, err := gate.SendCode(ctx, client.Send{Email: "alice@example.com"}); err != nil {
		fmt.Println(err)
		return
	}
	mail, _ := mailgate.box.Wait(ctx, "alice@example.com")
	code := sixDigits.FindString(mail.Text)

	for _, typed := range []string{code, code} {
		var incorrect *client.CodeIncorrect
		switch err := gate.VerifyCode(ctx, "alice@example.com", typed); {
		case err == nil:
			fmt.Println("this is Alice")
		case errors.As(err, &incorrect):
			fmt.Println("wrong; more tries:", incorrect.AttemptsLeft)
		case errors.Is(err, client.ErrCodeExpired):
			fmt.Println("used already, or too old")
		default:
			fmt.Println(err)
		}
	}
	// Output:
	// this is Alice
	// used already, or too old
}

// An action is whatever else is to be limited. What came to nothing is given back.
func ExampleClient_Take() {
	mailgate := openGate(nil)
	defer mailgate.Close()
	gate, _ := client.New(mailgate.URL, "Hush-7f3b-9d21-c460", client.Options{})
	ctx := context.Background()

	taken, err := gate.Take(ctx, "reply", "user 4711")
	fmt.Println(taken.Wait, err)
	released, err := gate.Release(ctx, "reply", "user 4711", taken.ID)
	fmt.Println(released, err)
	_, err = gate.Take(ctx, "reply", "user 4711")
	fmt.Println(err)
	_, err = gate.Take(ctx, "reply", "user 4711")
	fmt.Println(err)
	// Output:
	// 1m0s <nil>
	// true <nil>
	// <nil>
	// taking an action: mailgate says to wait 1m0s: limit minute of rule reply is reached
}

// An operator has a key of another kind.
func ExampleClient_Reset() {
	mailgate := openGate(nil)
	defer mailgate.Close()
	gate, _ := client.New(mailgate.URL, "Hush-7f3b-9d21-c460", client.Options{})
	operator, _ := client.New(mailgate.URL, "ops-Hush-7f3b-9d21-c460", client.Options{Timeout: 5 * time.Second})
	ctx := context.Background()

	_, _ = gate.SendCode(ctx, client.Send{Email: "alice@example.com"})
	fmt.Println(operator.Reset(ctx, "alice@example.com", "ticket 4711"))
	seen, err := operator.Inspect(ctx, "alice@example.com")
	fmt.Println(len(seen.Sends), seen.Wait, err)
	// Output:
	// 1 <nil>
	// 0 0s <nil>
}
