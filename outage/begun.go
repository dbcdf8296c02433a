package outage

import (
	"sync"
	"sync/atomic"

	"github.com/mailgate/mailgate/idempotency"
)

// begun are the leases that a keeper gave alone, each with its end. Not all of them are
// finished or abandoned, so now and then those are forgotten that have ended.
type begun struct {
	ends   sync.Map // by token
	number atomic.Int64
	most   int64
}

// mostBegun is how many of them a keeper remembers, of about 130 bytes each. Beyond it
// begins nothing alone.
const mostBegun = 500_000

func (b *begun) full() bool { return b.number.Load() >= b.most }

func (b *begun) add(token idempotency.Token, end int64) {
	if _, again := b.ends.Swap(token, end); !again {
		b.number.Add(1)
	}
}

func (b *begun) remove(token idempotency.Token) (found bool) {
	if _, found = b.ends.LoadAndDelete(token); found {
		b.number.Add(-1)
	}
	return found
}

// sweep forgets those that have ended.
func (b *begun) sweep(now int64) {
	b.ends.Range(func(token, end any) bool {
		if end.(int64) <= now {
			b.remove(token.(idempotency.Token))
		}
		return true
	})
}
