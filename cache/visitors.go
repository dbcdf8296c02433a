package cache

import (
	"sync/atomic"
	"time"
)

// visitors counts callers inside, so that what they use is closed only when the last
// has left. All meet at one number, which is nothing beside what they ask of the disk.
type visitors struct {
	closed atomic.Bool
	inside atomic.Int64
}

func (v *visitors) enter() bool {
	v.inside.Add(1)
	if v.closed.Load() {
		v.leave()
		return false
	}
	return true
}

func (v *visitors) leave() { v.inside.Add(-1) }

// close lets nobody in any more and returns when all are out.
func (v *visitors) close() {
	v.closed.Store(true)
	for v.inside.Load() != 0 {
		time.Sleep(50 * time.Microsecond)
	}
}
