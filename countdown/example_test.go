package countdown_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mailgate/mailgate/countdown"
)

func Example() {
	tokens, err := countdown.New([]byte("sixteen bytes of chance, or more"))
	if err != nil {
		fmt.Println(err)
		return
	}
	const now, window = 1_700_000_000_000, 24 * 60 * 60 * 1000
	token := tokens.Seal("alice@example.com", now+window)
	fmt.Println("shows the address:", strings.Contains(token, "alice"))

	mailbox, err := tokens.Open(token, now)
	fmt.Println(mailbox, err)

	_, err = tokens.Open(token, now+window)
	fmt.Println(err)
	// Output:
	// shows the address: false
	// alice@example.com <nil>
	// countdown: the token is not valid
}

// Whatever is wrong with a token, the error is the same value.
func ExampleTokens_Open() {
	ours, _ := countdown.New([]byte("the secret of these servers"))
	theirs, _ := countdown.New([]byte("the secret of other servers"))

	token := ours.Seal("alice@example.com", 2000)
	for _, try := range []string{"", token[:60], "B" + token[1:], theirs.Seal("alice@example.com", 2000)} {
		_, err := ours.Open(try, 1000)
		fmt.Println(err == countdown.ErrInvalid)
	}
	_, err := ours.Open(token, 2000)
	fmt.Println(errors.Is(err, countdown.ErrInvalid))
	// Output:
	// true
	// true
	// true
	// true
	// true
}

// Two tokens of one mailbox have nothing in common but their length, and short and long
// addresses have the same.
func ExampleTokens_Seal() {
	tokens, _ := countdown.New([]byte("sixteen bytes of chance, or more"))
	one := tokens.Seal("al@example.com", 1000)
	two := tokens.Seal("al@example.com", 1000)
	other := tokens.Seal("alexandrina.the.second@mail.example.com", 1000)
	fmt.Println(one == two, len(one) == len(two), len(one) == len(other))
	// Output: false true true
}
