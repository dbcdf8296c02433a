package relay

import (
	"time"

	"github.com/mailgate/mailgate/internal/breaker"
)

// reached reports whether a relay that failed had taken the connection and the login: another connection would
// tell nothing new. A wrong password is not tried again and again, either.
func (e *Error) reached() bool {
	switch e.Step {
	case StepConnect, StepTLS, StepBanner, StepEHLO, StepSTARTTLS:
		return false
	}
	return true
}

// watch begins to probe a relay that could not be reached, if its circuit is open. It is called by a transaction,
// for which Close waits.
func (r *Relays) watch(one *relay, failure *Error, o breaker.Outcome) {
	if o != breaker.Failed || failure.reached() || !one.circuit.Open() || one.probing.Swap(true) {
		return
	}
	r.probes.Go(func() {
		defer one.probing.Store(false)
		r.probe(one)
	})
}

// probe connects to a relay without an email until the relay answers, and then closes its circuit.
func (r *Relays) probe(one *relay) {
	again := time.NewTicker(r.options.limits.Probe)
	defer again.Stop()
	for {
		select {
		case <-again.C:
		case <-r.open.Done():
			return
		}
		if !one.circuit.Open() {
			return
		}
		b, release := newBudget(r.open, r.life, r.options.Deadline, time.Time{})
		c, failure := one.dial(b)
		if failure == nil {
			c.quit()
			if one.circuit.Close() {
				one.turned(false)
			}
		}
		release()
		if failure == nil || failure.reached() {
			return
		}
	}
}
