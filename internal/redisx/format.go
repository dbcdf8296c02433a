package redisx

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrFormat means that the records in Redis are written in another format than this program's, so
// Redis was not asked.
var ErrFormat = errors.New("the records in Redis have another format")

// format keeps programs of two formats from sharing records: no command is sent unless the format on
// record was this program's within the last second. Redis may be flushed, restored or replaced meanwhile.
type format struct {
	client redis.UniversalClient
	key    string
	own    string // empty if there is nothing to check
	began  time.Time
	until  atomic.Int64  // nanoseconds since began, for which the format is known to be the own
	asking chan struct{} // full while a caller reads it for all
}

const formatFor = time.Second

// newFormat returns the check for the options.
func newFormat(client redis.UniversalClient, o Options) *format {
	f := &format{client: client, key: o.Prefix + ":format", began: time.Now(), asking: make(chan struct{}, 1)}
	if o.Format != 0 {
		f.own = strconv.Itoa(o.Format)
	}
	return f
}

// readFormat returns the format on record, and records the own where there is none. It is no Script, as
// those wait for the pipeline of the client, which waits for the check.
const readFormat = `local found = redis.call('GET', KEYS[1])
if found then return found end
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]`

func (f *format) check(ctx context.Context) error {
	if f.own == "" || f.known() {
		return nil
	}
	select { // else each caller would leave a connection of its own
	case f.asking <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-f.asking }()
	if f.known() {
		return nil
	}
	now := time.Since(f.began)
	found, err := f.client.Eval(ctx, readFormat, []string{f.key}, f.own).Result()
	if err != nil {
		return fmt.Errorf("reading the format of the records: %w", err)
	}
	if found != f.own {
		f.until.Store(0)
		return fmt.Errorf("%w: %v, and this program reads %s", ErrFormat, found, f.own)
	}
	f.until.Store(int64(now + formatFor))
	return nil
}

// known reports whether the format on record is known to be the own.
func (f *format) known() bool { return int64(time.Since(f.began)) < f.until.Load() }
