package faults_test

import (
	"slices"
	"time"

	"github.com/mailgate/mailgate/internal/faults/judge"
)

// kind is one sort of fault: what it needs, how it is injected and repaired, what effect shows
// that it reached the programs, and what is allowed meanwhile.
type kind struct {
	name    string
	store   store
	nodes   int                    // that share the store; 3 if 0
	environ []string               // further settings
	within  func(*rig) []string    // a command that runs each node
	program func() (string, error) // another build of mailgate
	solo    bool                   // it leaves no time on the machine for other runs

	terms judge.Terms
	brief bool // the fault is over once injected
	// rest is how much longer than usual nodes may take to be healthy after the repair, such as
	// while a relay's circuit breaker is open.
	rest func(held time.Duration) time.Duration

	effect effect
	inject func(*rig) (repair func())
}

// kinds are all of them, those first that take longest.
var kinds = slices.Concat(redisKinds, memoryKinds, relayKinds(), processKinds, overloadKinds)

// healthyWithin is how soon after the repair all nodes must be healthy.
const healthyWithin = 5 * time.Second

// A shape is how large a run is.
type shape struct {
	rate   int           // requests a second
	calm   time.Duration // before the fault, at least; the seed adds up to as much again
	hold   time.Duration // of the fault, at least
	effect time.Duration // how much longer the fault lasts, at most, until it is seen
	after  time.Duration // of the load, when all nodes are healthy again
	looks  int           // mailboxes that are looked at in the end, at most
}

var (
	short = shape{rate: 40, calm: 700 * time.Millisecond, hold: 2 * time.Second, effect: 15 * time.Second, after: 700 * time.Millisecond, looks: 40}
	full  = shape{rate: 250, calm: 2 * time.Second, hold: 8 * time.Second, effect: 15 * time.Second, after: 3 * time.Second, looks: 400}
)

// noRepair is for faults that need none.
func noRepair() {}
