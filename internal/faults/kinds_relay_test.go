package faults_test

import (
	"time"

	"github.com/mailgate/mailgate/internal/faults/judge"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
)

var (
	// noRelay are the answers of a node that has no working relay, or lost it in a send.
	noRelay = []string{"relay-unavailable", "busy", "delivery-unknown"}
	// rejected are those of a relay that refuses emails for good.
	rejected = append([]string{"recipient-rejected"}, noRelay...)
)

// ofRecipient are the steps at which a refusal says something about the recipient.
var ofRecipient = []fault.Step{fault.RCPT, fault.DATA, fault.Dot}

// everyStep are the steps at which a relay can refuse a client. That says nothing about the
// recipient.
var everyStep = []fault.Step{fault.Banner, fault.EHLO, fault.MAIL, fault.RCPT, fault.DATA, fault.Dot}

// relayKinds are the faults of the relay. Whether there is another behind it is up to the seed.
func relayKinds() []*kind {
	all := []*kind{
		{name: "relay-silent-banner", inject: plays(fault.Silence, fault.Banner)},
		{name: "relay-silent-ehlo", inject: plays(fault.Silence, fault.EHLO)},
		{name: "relay-silent-rcpt", inject: plays(fault.Silence, fault.RCPT)},
		{name: "relay-silent-dot", inject: plays(fault.Silence, fault.Dot)},
		{name: "relay-drip", inject: plays(fault.Drip, fault.EHLO, fault.MAIL, fault.RCPT, fault.DATA, fault.Dot)},
		{name: "relay-reset-dot", inject: plays(fault.Reset, fault.Dot)},
		{name: "relay-421", inject: plays(fault.Leaving, fault.Banner, fault.MAIL, fault.RCPT, fault.DATA, fault.Dot)},
		{name: "relay-5xx", terms: judge.Terms{Fails: rejected}, inject: plays(fault.Permanent, ofRecipient...)},
		{name: "relay-barred", inject: plays(fault.Barred, everyStep...)},
	}
	for _, k := range all {
		k.store, k.effect, k.rest = onRedis, troubles, relayRest
		if k.terms.Fails == nil {
			k.terms.Fails = noRelay
		}
	}
	return all
}

// relayRest is how long a relay may not be tried after it has failed for so long: each
// rest is twice the one before, and the last may begin when the fault ends.
func relayRest(held time.Duration) time.Duration {
	rest := 5 * time.Second
	for whole := rest; whole < held; whole += rest {
		rest *= 2
	}
	return rest
}

// plays makes the relay fail in one way, at a step that the seed chooses. What is under
// way there meets the fault too, or only new connections do.
func plays(how fault.Kind, steps ...fault.Step) func(*rig) func() {
	return func(s *rig) func() {
		at := steps[s.rng.IntN(len(steps))]
		s.relays[0].Play(fault.Script{At: at, Kind: how, DripEvery: time.Second})
		if at == fault.Banner || at == fault.EHLO || s.rng.IntN(2) == 0 {
			s.relays[0].Cut()
		}
		return func() { // as a relay that was restarted
			s.relays[0].Play(fault.Script{})
			s.relays[0].Cut()
		}
	}
}
