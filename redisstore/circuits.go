package redisstore

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mailgate/mailgate/internal/breaker"
)

// ErrResting means that the key's server has not answered for a while, and was not asked:
// it rests until it answers a trial, which is made every half second while anybody calls.
// A request that has waited for the server in vain is told the same; see Patience.
var ErrResting = errors.New("redis does not answer and is left alone for a moment")

// resting is the rule. The rest is short and never grows: whoever repairs Redis wants to
// see it back at once, and a trial costs nobody a wait.
var resting = breaker.Rule{Failures: 3, Cooldown: trialEvery, MaxCooldown: trialEvery}

const trialEvery = 500 * time.Millisecond

// circuits know which servers rest: in a Cluster one may be dead and the others well. They
// keep only servers that have failed since they last answered.
type circuits struct {
	now  func() int64
	many atomic.Int32 // how many there are: while there are none, no call looks up its server

	mu sync.Mutex
	of map[string]suspect // by address
}

// A suspect is a server that has failed since it last answered, and when.
type suspect struct {
	breaker.State
	failed int64
}

// suspicion is for how long a few failures are remembered of a server that nobody asks any
// more, such as a master that was replaced.
const suspicion = 10_000

func newCircuits(now func() int64) *circuits {
	return &circuits{now: now, of: map[string]suspect{}}
}

// calm reports that no server has failed since it last answered.
func (c *circuits) calm() bool { return c.many.Load() == 0 }

// suspects reports whether the server has failed since it last answered.
func (c *circuits) suspects(address string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, found := c.of[address]
	return found
}

// open reports whether the server rests.
func (c *circuits) open(address string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[address].Open()
}

// due takes a pass for a trial of each server that has rested for long enough.
func (c *circuits) due() (addresses []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	for address, s := range c.of {
		next, pass := resting.Ask(s.State, now)
		switch {
		case pass.Trial:
			addresses = append(addresses, address)
		case !next.Open() && now-s.failed > suspicion:
			c.drop(address)
			continue
		}
		c.of[address] = suspect{next, s.failed}
	}
	return addresses
}

// failed counts a call, and reports whether the server now rests because of it.
func (c *circuits) failed(address string) (opened bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, now := c.of[address].State, c.now()
	after := resting.Settle(before, now, breaker.Pass{OK: true}, breaker.Failed)
	c.keep(address, suspect{after, now})
	return after.Open() && !before.Open()
}

// answered notes that a server has answered a call. It ends no rest: the call may have begun
// long before.
func (c *circuits) answered(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.of[address].Open() {
		c.drop(address)
	}
}

// tried notes what became of a trial.
func (c *circuits) tried(address string, outcome breaker.Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, found := c.of[address]
	switch {
	case !found:
	case outcome == breaker.Answered:
		c.drop(address)
	default:
		s.State = resting.Settle(s.State, c.now(), breaker.Pass{OK: true, Trial: true}, outcome)
		c.keep(address, s)
	}
}

func (c *circuits) keep(address string, s suspect) {
	c.of[address] = s
	c.many.Store(int32(len(c.of)))
}

// drop forgets the server: it is well, or is a master no more.
func (c *circuits) drop(address string) {
	delete(c.of, address)
	c.many.Store(int32(len(c.of)))
}

// count is how many servers rest.
func (c *circuits) count() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, state := range c.of {
		if state.Open() {
			n++
		}
	}
	return n
}
