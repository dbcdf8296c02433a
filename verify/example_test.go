package verify_test

import (
	"crypto/rand"
	"fmt"

	"github.com/mailgate/mailgate/verify"
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
