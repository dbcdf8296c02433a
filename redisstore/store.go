package redisstore

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultTimeout is how long a call may take when Options.Timeout is zero.
const DefaultTimeout = 250 * time.Millisecond

// Options say where Redis is, how its keys begin and how sure to be.
type Options struct {
	// URL names the servers:
	//
	//	redis://user:password@host:6379/0
	//	redis+sentinel://user:password@host1:26379,host2:26379/master-name/0
	//	redis+cluster://user:password@host1:6379,host2:6379
	//
	// With rediss in front the connections are TLS; ?ca= names a PEM file with the
	// authorities to trust instead of the system's. Sentinels with a password of their
	// own take ?sentinel_user= and ?sentinel_password=.
	URL string
	// Prefix begins every key; the default is "mailgate:{}". The empty braces keep
	// braces in an address from choosing the server that its record lies on.
	Prefix string
	// Timeout is the longest a call may take; the default is DefaultTimeout.
	Timeout time.Duration
	// Confirm is how many replicas must have a write before it is a yes. With 0 the
	// master alone is enough.
	Confirm int
	// Clock replaces the servers' clock. It is for tests: in production the clocks of
	// callers differ, and one that runs ahead would erase live records.
	Clock func() int64
}

// A Store is Redis, as all who keep records there share it. Any number of goroutines may
// use one.
type Store struct {
	redis   *redisClient
	prefix  string
	timeout time.Duration
	confirm int
	clock   func() int64

	deadline atomic.Pointer[deadline] // the newest
	servers  *serverClocks
	probers  *probers
	trials   *trials
	vigil    *vigil // nil where nobody watches

	closed  atomic.Bool
	closing func() error // once

	mu      sync.Mutex
	scripts []*Script
	open    *question // whether Redis is ready, if that is being asked
}

// Open makes the connections ready. It does not wait for Redis: see Prepare.
func Open(o Options) (*Store, error) {
	if o.Confirm < 0 || o.Timeout < 0 {
		return nil, errors.New("opening redis: neither Confirm nor Timeout can be negative")
	}
	if o.Prefix == "" {
		o.Prefix = "mailgate:{}"
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	servers, err := parseURL(o.URL)
	if err != nil {
		return nil, fmt.Errorf("opening redis: %w", err)
	}
	clocks := newServerClocks()
	s := &Store{
		redis: connect(servers, o.Timeout, o.Confirm > 0), prefix: o.Prefix,
		timeout: o.Timeout, confirm: o.Confirm, clock: o.Clock,
		servers: clocks, probers: newProbers(o.Timeout), trials: newTrials(),
	}
	s.closing = sync.OnceValue(s.redis.close)
	return s, nil
}

// Close waits until what was sent is answered or has timed out, and ends the connections.
// The records of all who share the store are out of reach from then on, and calls are refused
// that begin then. To close it once more does nothing, and returns the same.
func (s *Store) Close() error {
	s.closed.Store(true)
	s.trials.close()
	s.probers.close()
	return s.closing()
}
