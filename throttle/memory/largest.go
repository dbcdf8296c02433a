package memory

import "sync/atomic"

// A largest is, of all that views of one table count by, the one that makes it keep most.
// It outlasts the view it came from: nobody says when a view is no longer used.
type largest[V any] struct {
	value  atomic.Pointer[V]
	others atomic.Bool
	size   func(V) int64
}

func newLargest[V any](first V, size func(V) int64) *largest[V] {
	l := &largest[V]{size: size}
	l.value.Store(&first)
	return l
}

func (l *largest[V]) get() V { return *l.value.Load() }

// amongOthers reports whether any was offered that is not of the same size. It says so before
// a larger one counts.
func (l *largest[V]) amongOthers() bool { return l.others.Load() }

// offer takes v in place of what is there, if it is larger.
func (l *largest[V]) offer(v V) {
	if l.size(v) != l.size(l.get()) {
		l.others.Store(true)
	}
	for old := l.value.Load(); l.size(v) > l.size(*old); old = l.value.Load() {
		l.value.CompareAndSwap(old, &v)
	}
}
