package cache

import (
	"runtime"
	"sync/atomic"
)

// visitors counts readers inside, so that Close can wait for the last to leave:
// Ristretto must not be closed under a Get. The count is spread over many places so
// that readers of different keys do not meet.
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

// close lets nobody in any more and waits until all are out. It reports false when
// it was closed before.
func (v *visitors) close() bool {
	if v.closed.Swap(true) {
		return false
	}
	for i := range v.inside {
		for v.inside[i].count.Load() != 0 {
			runtime.Gosched()
		}
	}
	return true
}
