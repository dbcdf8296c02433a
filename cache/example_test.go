package cache_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/mailgate/mailgate/cache"
)

// counts keeps ints as their decimal digits.
type counts struct{}

func (counts) Append(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) }
func (counts) Parse(b []byte) (int, error)   { return strconv.Atoi(string(b)) }
func (counts) Weigh(int) int                 { return 8 }

// Counting guesses, at most three until the clock reads 1000. What was counted is
// still there when the directory is opened again.
func Example() {
	dir, err := os.MkdirTemp("", "guesses")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for range 2 {
		disk, err := cache.Open(cache.DiskOptions{Dir: dir})
		if err != nil {
			fmt.Println(err)
			return
		}
		guesses, err := cache.NewMap(disk, "guess", counts{}, cache.DefaultSize())
		if err != nil {
			fmt.Println(err)
			return
		}
		for now := range int64(2) {
			var allowed bool
			clock := func() int64 { return now }
			err := guesses.Update(context.Background(), "alice", clock, func(n int, _ bool, _ int64) cache.Edit[int] {
				if allowed = n < 3; !allowed {
					return cache.Keep[int]()
				}
				return cache.Put(n+1, 1000)
			})
			fmt.Println(allowed, err)
		}
		guesses.Close()
		if err := disk.Close(); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// true <nil>
	// true <nil>
	// true <nil>
	// false <nil>
}

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "data")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	disk, err := cache.Open(cache.DiskOptions{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer disk.Close()

	_, err = cache.Open(cache.DiskOptions{Dir: dir})
	fmt.Println(errors.Is(err, cache.ErrInUse))
	// Output: true
}

func ExampleMap_Get() {
	disk, err := cache.Open(cache.DiskOptions{Dir: cache.Memory})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer disk.Close()
	m, err := cache.NewMap(disk, "example", counts{}, cache.Size{Entries: 1000, Bytes: 1 << 20})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()

	now := int64(0)
	clock := func() int64 { return now }
	err = m.Update(context.Background(), "alice", clock, func(int, bool, int64) cache.Edit[int] { return cache.Put(7, 1000) })
	fmt.Println(err)
	now = 999
	fmt.Println(m.Get(context.Background(), "alice", clock))
	fmt.Println(m.Get(context.Background(), "bob", clock))
	now = 1000
	fmt.Println(m.Get(context.Background(), "alice", clock)) // expired
	// Output:
	// <nil>
	// 7 true 999 <nil>
	// 0 false 999 <nil>
	// 0 false 1000 <nil>
}

func ExampleDisk_Ready() {
	disk, err := cache.Open(cache.DiskOptions{Dir: cache.Memory})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(disk.Ready(context.Background()))
	if err := disk.Close(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(disk.Ready(context.Background()))
	// Output:
	// <nil>
	// the store is closed
}
