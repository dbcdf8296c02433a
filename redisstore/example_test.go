package redisstore_test

import (
	"fmt"

	"github.com/mailgate/mailgate/redisstore"
)

func ExampleCheckURL() {
	for _, url := range []string{
		"redis+sentinel://one,two,three/mymaster",
		"redis://:secret@one,two",
		"localhost:6379",
	} {
		fmt.Println(redisstore.CheckURL(url))
	}
	// Output:
	// <nil>
	// the redis URL names several hosts; is it redis+cluster:// or redis+sentinel://?
	// the redis URL has no scheme; write it as redis://host:6379
}

func ExampleBelow() {
	fmt.Println(redisstore.Below("mailgate:{}", "verify.codes"))
	fmt.Println(redisstore.Below("acme:", "verify.codes"))
	// Output:
	// mailgate:verify.codes:{}
	// acme:verify.codes:
}
