package faults_test

import (
	"time"

	"github.com/mailgate/mailgate/faults/judge"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/servertest"
)

// relayKinds are the faults of the relay. Whether there is another behind it is up to the
// seed.
var relayKinds = []*kind{
	relayKind("relay-silent-banner", plays(fault.Silence, fault.Banner)),
	relayKind("relay-silent-ehlo", plays(fault.Silence, fault.EHLO)),
	relayKind("relay-silent-rcpt", plays(fault.Silence, fault.RCPT)),
	relayKind("relay-silent-dot", plays(fault.Silence, fault.Dot)),
	relayKind("relay-reset-dot", plays(fault.Reset, fault.Dot)),
	relayKind("relay-421", plays(fault.Leaving, fault.Banner, fault.MAIL, fault.RCPT, fault.DATA, fault.Dot)),
	rejecting(relayKind("relay-5xx", plays(fault.Permanent, fault.MAIL, fault.RCPT, fault.DATA, fault.Dot))),
	relayKind("relay-barred", plays(fault.Barred, everyStep...)),
	spared(relayKind("relay-barred-spare", plays(fault.Barred, everyStep...))),
	relayKind("relay-drip", plays(fault.Drip, fault.EHLO, fault.MAIL, fault.RCPT, fault.DATA, fault.Dot)),
	overTLS(relayKind("relay-no-starttls", (*rig).stripSTARTTLS)),
	overTLS(relayKind("relay-bad-certificate", (*rig).showBadCertificate)),
}

func relayKind(name string, inject func(*rig)) *kind {
	return &kind{name: name, store: onRedis, terms: judge.Terms{Fails: noRelay}, effect: troubles, inject: inject, repair: (*rig).repairRelay, rest: relayRest}
}

// noRelay are the answers of a node that has no working relay, or lost it in a send.
var noRelay = []string{"relay-unavailable", "busy", "delivery-unknown"}

// rejecting is for a relay that refuses emails for good.
func rejecting(k *kind) *kind {
	k.terms.Fails = append([]string{"recipient-rejected"}, noRelay...)
	return k
}

// everyStep are the steps at which a relay can refuse a client. That says nothing about the
// recipient.
var everyStep = []fault.Step{fault.Banner, fault.EHLO, fault.MAIL, fault.RCPT, fault.DATA, fault.Dot}

// spared is for a relay with another behind it, which is handed all that the first does not
// take. What was on its way when that one cut its connections may have left.
func spared(k *kind) *kind {
	k.spare, k.terms.Fails = true, []string{"delivery-unknown"}
	return k
}

func overTLS(k *kind) *kind {
	k.tls = true
	return k
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
func plays(how fault.Kind, steps ...fault.Step) func(*rig) {
	return func(s *rig) {
		at := steps[s.rng.IntN(len(steps))]
		s.relays.first.Play(fault.Script{At: at, Kind: how, DripEvery: time.Second})
		if at == fault.Banner || at == fault.EHLO || s.rng.IntN(2) == 0 {
			s.relays.first.Cut()
		}
	}
}

// repairRelay acts as a relay that was restarted.
func (s *rig) repairRelay() {
	script := fault.Script{}
	if s.trust != nil {
		script.TLS = s.certificate()
	}
	s.relays.first.Play(script)
	s.relays.first.Cut()
}

func (s *rig) stripSTARTTLS() {
	s.relays.first.Play(fault.Script{TLS: s.certificate(), NoSTARTTLS: true})
	s.relays.first.Cut()
}

// showBadCertificate presents one that has expired, or is not trusted.
func (s *rig) showBadCertificate() {
	by, until := s.trust, time.Now().UnixMilli()-60_000
	if s.rng.IntN(2) == 0 {
		by, until = servertest.NewAuthority(s.t), until+3_600_000
	}
	s.relays.first.Play(fault.Script{TLS: s.signed(by, until)})
	s.relays.first.Cut()
}
