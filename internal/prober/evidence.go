package prober

import "time"

// State is what is known of a master.
type State int

const (
	Here      State = iota // it answers, or no call has failed since it did
	Suspected              // a call has failed, and the probes have not decided yet
	Away                   // it refuses, or was silent for long enough
)

// outcome is the result of a probe.
type outcome int

const (
	answered     outcome = iota // the master took a write
	refused                     // the connection was refused or reset, or the master said that it takes no writes
	silent                      // no reply came in time, or no way to the master was found
	inconclusive                // this process could not probe, for want of files or memory
)

// So many probes in a row must be silent, and for so long, to prove that a master is away.
const (
	silentProbes = 3
	silentFor    = 700 * time.Millisecond
	failedCalls  = 3 // in a row, after which none are made until a probe is answered
)

// evidence is what speaks against a master.
type evidence struct {
	state  State
	failed int       // calls in a row that were not answered
	silent int       // probes in a row that were silent and on time
	since  time.Time // when the first of them began
}

// suspect notes that so many calls failed.
func (e *evidence) suspect(calls int) {
	if e.state == Here {
		*e = evidence{state: Suspected}
	}
	e.failed += calls
}

// heard notes that the master has answered a call. Only a probe ends an outage.
func (e *evidence) heard() { e.failed, e.silent = 0, 0 }

// probed notes a probe. Late says that this process did not run on time meanwhile.
func (e *evidence) probed(o outcome, began, ended time.Time, late bool) {
	switch {
	case o == answered:
		*e = evidence{}
	case e.state == Away:
	case o == refused:
		e.state = Away
	case o == inconclusive || late:
		e.failed, e.silent = 0, 0
	default:
		if e.silent == 0 {
			e.since = began
		}
		e.silent++
		if e.silent >= silentProbes && ended.Sub(e.since) >= silentFor {
			e.state = Away
		}
	}
}
