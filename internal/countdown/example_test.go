package countdown_test

import (
	"fmt"
	"strings"

	"github.com/mailgate/mailgate/internal/countdown"
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

	fmt.Println(tokens.Open(token, now))
	_, ok := tokens.Open(token, now+window)
	fmt.Println(ok)
	// Output:
	// shows the address: false
	// alice@example.com true
	// false
}
