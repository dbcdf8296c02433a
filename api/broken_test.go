package api_test

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/throttle"
)

// The second byte of the record of a key is its state.
const (
	abandoned  = 1
	begun      = 2
	handedOver = 3
	answered   = 4
)

// broken is a store of records that fails on demand.
type broken struct {
	keyed.Store
	table *cache.Table
	now   func() int64

	closed  atomic.Bool                        // all steps fail
	refused atomic.Int32                       // steps to this state fail; 0 for none
	alone   bool                               // other nodes cannot be asked
	stop    func(ctx context.Context, to byte) // called before each step
}

var errKeys = fmt.Errorf("%w: dial tcp 10.1.2.3:6379: connection refused", throttle.ErrUnavailable)

func (b *broken) Update(ctx context.Context, key string, step keyed.Step) (bool, error) {
	to := byte(0)
	if old, err := b.table.Get(ctx, key); err == nil {
		if next, _ := step(old, b.now()); len(next) > 1 {
			to = next[1]
		}
	}
	if b.stop != nil {
		b.stop(ctx, to)
	}
	if b.closed.Load() || to != 0 && int32(to) == b.refused.Load() {
		return false, errKeys
	}
	_, err := b.Store.Update(ctx, key, step)
	return b.alone, err
}

func newBroken(table *cache.Table, now func() int64) *broken {
	return &broken{Store: keyed.Local(table, now), table: table, now: now}
}
