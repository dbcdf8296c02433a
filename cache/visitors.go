package cache

import (
	"sync/atomic"
	"time"
)

// visitors counts callers inside, so that what they use is closed only when the last
// has left. The count is spread over many places so that readers of different keys do
// not meet.
type visitors struct {
	closed atomic.Bool
	inside [64]struct {
		count atomic.Int64
		_     [56]byte // a cache line each
	}
}

func (v *visitors) enter(hash uint64) bool {
	v.inside[hash%64].count.Add(1)
	if v.closed.Load() {
		v.leave(hash)
		return false
	}
	return true
}

func (v *visitors) leave(hash uint64) { v.inside[hash%64].count.Add(-1) }

// close lets nobody in any more and returns when all are out.
func (v *visitors) close() {
	v.closed.Store(true)
	for i := range v.inside {
		for v.inside[i].count.Load() != 0 {
			time.Sleep(50 * time.Microsecond)
		}
	}
}
