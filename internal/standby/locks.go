package standby

import (
	"context"
	"fmt"
	"hash/maphash"

	"github.com/mailgate/mailgate/throttle"
	"golang.org/x/sync/semaphore"
)

// locks has a lock for each record; some records share one. It is not a sync.RWMutex, as a call that
// waits ends with its context.
type locks struct {
	all  [1024]*semaphore.Weighted
	seed maphash.Seed
}

// How much of a lock a decision holds. No two overlap on a record, unless both are by Redis.
const (
	sharing   = 1       // while Redis decides
	exclusive = 1 << 30 // while the node decides, or syncs
)

func newLocks() *locks {
	l := &locks{seed: maphash.MakeSeed()}
	for i := range l.all {
		l.all[i] = semaphore.NewWeighted(exclusive)
	}
	return l
}

// lock locks a record, unless ctx ends first.
func (l *locks) lock(ctx context.Context, k recordKey, part int64) (unlock func(), err error) {
	lock := l.all[maphash.Comparable(l.seed, k)%uint64(len(l.all))]
	if err := lock.Acquire(ctx, part); err != nil {
		return nil, fmt.Errorf("%w: %w", throttle.ErrUnchanged, err)
	}
	return func() { lock.Release(part) }, nil
}
