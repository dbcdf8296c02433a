package faults_test

import (
	"time"

	"github.com/mailgate/mailgate/faults/judge"
)

// kind is one sort of fault: what it needs, how it is injected and repaired, what effect shows
// that it reached the programs, and what is allowed meanwhile.
type kind struct {
	name string
	// store is what the histories are kept in, nodes how many share it (3), environ
	// further settings; disks gives each a disk for what it does alone; within is a
	// command that runs each node, program another build of it, tls has the relay spoken to
	// under TLS, and spare has another behind it, whatever the seed says.
	store   store
	nodes   int
	environ []string
	disks   bool
	within  func(*rig) []string
	program func() (string, error)
	tls     bool
	spare   bool
	// solo says that the kind leaves no time on the machine for another run. Its runs come
	// first, one after the other, and stay short.
	solo bool

	terms judge.Terms
	// hold is how long the fault lasts, where it is not as long as the shape has it.
	hold func(shape) time.Duration
	// rest is how much longer than usual nodes may take to be healthy after the repair, such as
	// for the rest of a relay's open circuit breaker.
	rest func(held time.Duration) time.Duration

	effect         effect
	inject, repair func(*rig)
	needs          func() string // why the kind cannot be had here, or nothing
	length         int           // those with more begin first
}

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
	full   bool
}

var (
	short = shape{rate: 40, calm: 700 * time.Millisecond, hold: 2 * time.Second, effect: 15 * time.Second, after: 700 * time.Millisecond, looks: 40}
	full  = shape{rate: 250, calm: 2 * time.Second, hold: 8 * time.Second, effect: 15 * time.Second, after: 3 * time.Second, looks: 400, full: true}
)

// kinds are all of them.
func kinds() (all []*kind) {
	for _, some := range [][]*kind{relayKinds, processKinds, redisKinds, overloadKinds} {
		all = append(all, some...)
	}
	return all
}
