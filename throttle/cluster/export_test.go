package cluster

import (
	"github.com/mailgate/mailgate/throttle"
	"github.com/redis/go-redis/v9"
)

// NewWithClock is New with the clock of a test in place of the server's.
func NewWithClock(client redis.UniversalClient, prefix string, a throttle.Algorithm, now func() int64) (*throttle.Limiter, error) {
	h, err := newHome(client, prefix, a)
	if err != nil {
		return nil, err
	}
	h.now = now
	return throttle.New(a, h), nil
}

// SetServersBack has the limiter take the clock of a key's server for one that is so much earlier.
func SetServersBack(l *throttle.Limiter, key string, ms int64) {
	h := l.Home.(*home)
	h.clocks.of(h.prefix + key + "}").Add(-ms)
}
