// Package local keeps a limiter's records in this process: in a cache.Table, in memory alone or also
// on disk.
//
//	store, err := cache.Open(cache.Options{Dir: "data"})
//	...
//	defer store.Close()
//	limiter := local.New(store.Table("mailboxes"), throttle.DefaultPolicy())
//
// An admission is durable, as far as the store is, before Take returns. A refusal reads the
// record and writes nothing.
package local

import (
	"bytes"
	"context"
	"fmt"
	"math"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
)

// New returns a limiter whose records are in a table. It belongs to the table's store and needs no
// closing. Limiters over one table share its records if their algorithms have the same Form.
//
// New panics if the algorithm was not made by a constructor of package throttle.
func New(table *cache.Table, a throttle.Algorithm) *throttle.Limiter {
	return throttle.New(a, home{table.Part(a.Form())})
}

// Memory returns a limiter whose records are in memory alone, as long as they take less than 64 MiB.
func Memory(a throttle.Algorithm) *throttle.Limiter {
	store, err := cache.Open(cache.Options{})
	if err != nil { // there is nothing to open
		panic(fmt.Sprintf("local: a store in memory: %v", err))
	}
	return New(store.Table("memory"), a)
}

// home is a throttle.Home over a table.
type home struct{ table *cache.Table }

func (h home) Do(ctx context.Context, key string, op throttle.Op) (throttle.Reply, error) {
	if op.Step == throttle.StepPeek {
		state, err := h.table.Get(ctx, key)
		return throttle.Reply{State: state, Now: h.table.Now()}, err
	}
	var r throttle.Reply
	err := h.table.Update(ctx, key, func(old []byte, now int64) (next []byte, expires int64) {
		if next, r = op.Apply(old, now); bytes.Equal(next, old) {
			return old, math.MaxInt64 // as it is: another algorithm may have made it, with a longer window
		}
		return next, op.By.Expires(next)
	})
	return r, err
}
