package cluster

import (
	"context"
	"strings"
	"sync"

	"github.com/mailgate/mailgate/throttle"
)

// looksAtOnce is how many mailboxes are looked at together while all are gone through.
const looksAtOnce = 32

// Each visits the histories of this limiter's name that have a send inside the longest
// window; with it a Limiter is a throttle.Surveyor. It asks every master for its keys, step
// by step, and only reads.
//
// Under a prefix without empty braces at its end the keys of limiters with a name begin as
// those of one without do. There a key with a colon behind the prefix is passed over.
func (l *Limiter) Each(ctx context.Context, visit func(throttle.History) bool) error {
	var failed error
	err := l.store.SortedSets(ctx, l.prefix, func(keys []string) bool {
		for len(keys) > 0 && failed == nil {
			some := keys[:min(len(keys), looksAtOnce)]
			keys = keys[len(some):]
			var histories []throttle.History
			if histories, failed = l.histories(ctx, some); failed != nil {
				return false
			}
			for _, h := range histories {
				if len(h) > 0 && !visit(h) {
					return false
				}
			}
		}
		return true
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		return throttle.Unavailable("going through the histories", err)
	}
	return nil
}

// histories looks at mailboxes by their keys, all at once.
func (l *Limiter) histories(ctx context.Context, keys []string) ([]throttle.History, error) {
	all, failed := make([]throttle.History, len(keys)), make([]error, len(keys))
	var looks sync.WaitGroup
	for i, key := range keys {
		mailbox := strings.TrimPrefix(key, l.prefix)
		if throttle.CheckKey(mailbox) != nil || !strings.HasSuffix(l.prefix, "{}") && strings.Contains(mailbox, ":") {
			continue
		}
		looks.Go(func() { all[i], failed[i] = l.History(ctx, mailbox) })
	}
	looks.Wait()
	for _, err := range failed {
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
