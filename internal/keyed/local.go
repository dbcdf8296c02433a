package keyed

import (
	"context"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
)

// doing is what an error says was being done; the caller says why.
const doing = "changing a record"

type local struct {
	table *cache.Table
	now   func() int64
}

// Local returns the Store of one process. The clock must be the one that the table's values
// expire by.
func Local(table *cache.Table, now func() int64) Store { return local{table, now} }

func (l local) Update(ctx context.Context, key string, step Step) (alone bool, err error) {
	err = l.table.Update(ctx, key, func(old []byte) ([]byte, int64) { return step(old, l.now()) })
	if err != nil {
		return false, throttle.Unavailable(doing, err)
	}
	return false, nil
}
