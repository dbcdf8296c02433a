package cluster

import (
	"github.com/mailgate/mailgate/throttle"
	"github.com/redis/go-redis/v9"
)

// NewWithClock is New with the clock of a test in place of the server's.
func NewWithClock(client redis.UniversalClient, prefix string, a throttle.Algorithm, now func() int64) (*Limiter, error) {
	l, err := New(client, prefix, a)
	if err == nil {
		l.now = now
	}
	return l, err
}

// SetServersBack has the limiter take the clock of a key's server for one that is so much earlier.
func (l *Limiter) SetServersBack(key string, ms int64) { l.clocks.of(l.prefix + key + "}").Add(-ms) }
