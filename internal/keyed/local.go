package keyed

import (
	"context"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
)

// doing is what an error says was being done; the caller says why.
const doing = "changing a record"

type local struct{ table *cache.Table }

// Local returns the Store of one process.
func Local(table *cache.Table) Store { return local{table} }

func (l local) Update(ctx context.Context, key string, step Step) (degraded bool, err error) {
	if err := l.table.Update(ctx, key, step); err != nil {
		return false, throttle.Unavailable(doing, err)
	}
	return false, nil
}
