package redisstore_test

import (
	"context"
	"fmt"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
)

// A package that keeps counts: one script looks and writes in one step.
func Example() {
	server, stop := redistest.ForExample() // a Redis of its own
	defer stop()
	store, err := redisstore.Open(redisstore.Options{URL: server.URL()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	// A run that is repeated would count twice, so it is for Once.
	script := redisstore.NewScript(`return tostring(redis.call('INCRBY', KEYS[1], ARGV[1]))`, nil)
	prefix := redisstore.Below(store.Prefix(), "counts")
	count := func(key string, n int) (string, error) {
		call, err := store.Begin(context.Background(), prefix+key)
		if err != nil {
			return "", err
		}
		defer call.End()
		return call.Once(script, n)
	}
	fmt.Println(count("apples", 2))
	fmt.Println(count("pears", 1))
	fmt.Println(count("apples", 3))
	// Output:
	// 2 <nil>
	// 1 <nil>
	// 5 <nil>
}

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
