package redisstore

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Of a master that was replaced nothing stays behind but until the next is met.
func TestLinesToMastersThatWere(t *testing.T) {
	c := new(redisClient)
	defer c.close()
	for i := range 5 {
		client := redis.NewClient(&redis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", 1+i)})
		c.client = client
		if _, err := c.line(context.Background(), "key"); err != nil {
			t.Fatal(err)
		}
		if n := heldLines(c); n > 1 {
			t.Errorf("%d are held", n)
		}
		if i < 4 {
			client.Close() // as the library does
		}
	}
}

func heldLines(c *redisClient) (n int) {
	c.lines.Range(func(any, any) bool { n++; return true })
	return n
}

// Going through many keys takes a few bytes for each, however long they are.
func TestMemoryOfAWalk(t *testing.T) {
	const many, long, most = 1 << 13, 200, 64
	heap := func() int64 {
		var now runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&now)
		return int64(now.HeapAlloc)
	}
	before := heap()
	met := newMet()
	for i := range many {
		key := []string{fmt.Sprint(i, strings.Repeat("k", long))}
		if len(met.fresh(key)) != 1 || len(met.fresh(key)) != 0 {
			t.Fatal("a key is not met once")
		}
	}
	if each := (heap() - before) / many; each > most {
		t.Errorf("%d bytes for each key", each)
	}
	runtime.KeepAlive(met)
}
