package redisx

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// ErrFormat means that the records in Redis are written in another format than this program's, so
// Redis was not asked.
var ErrFormat = errors.New("the records in Redis have another format")

// format keeps programs of two formats from sharing records: no command is sent before the format
// on record is known to be this program's.
type format struct {
	client redis.UniversalClient
	key    string
	own    string
	known  atomic.Bool // to be the own
}

// newFormat returns the check for the options; without a format there is nothing to check.
func newFormat(client redis.UniversalClient, o Options) *format {
	f := &format{client: client, key: o.Prefix + ":format", own: strconv.Itoa(o.Format)}
	f.known.Store(o.Format == 0)
	return f
}

// readFormat returns the format on record, and records the own where there is none. It is no Script, as
// those wait for the pipeline of the client, which waits for the check.
const readFormat = `local found = redis.call('GET', KEYS[1])
if found then return found end
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]`

func (f *format) check(ctx context.Context) error {
	if f.known.Load() {
		return nil
	}
	found, err := f.client.Eval(ctx, readFormat, []string{f.key}, f.own).Result()
	if err != nil {
		return fmt.Errorf("reading the format of the records: %w", err)
	}
	if found != f.own {
		return fmt.Errorf("%w: %v, and this program reads %s", ErrFormat, found, f.own)
	}
	f.known.Store(true)
	return nil
}
