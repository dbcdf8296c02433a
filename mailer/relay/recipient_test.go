package relay_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/relay"
)

// Anybody may name a recipient, and with it a server that the relay asks while
// we wait. These tests hold what such a recipient can do to the mail of others.

// to is a letter to somebody in this domain.
func to(domain string) mail {
	m := letter()
	m.To = "somebody@" + domain
	return m
}

// TestCircuit_RecipientFaults_StaysClosed: otherwise a mailbox that always says
// "not now", or nothing, would stop everybody's mail.
func TestCircuit_RecipientFaults_StaysClosed(t *testing.T) {
	answers := []fault.Kind{fault.Temporary, fault.Permanent, fault.Barred}
	for step, kinds := range map[fault.Step][]fault.Kind{
		fault.RCPT: append(answers, fault.Silence, fault.Drip, fault.Leaving, fault.HangUp, fault.Reset),
		fault.DATA: answers,
		fault.Dot:  answers,
	} {
		for _, kind := range kinds {
			for name, script := range map[string]fault.Script{
				"in a group": {}, "one by one": {NoPipelining: true}, "answers held back": {HoldBack: true},
			} {
				script.At, script.Kind, script.To = step, kind, "slow.example"
				t.Run(fmt.Sprintf("%s/%s/%s", step, kind, name), func(t *testing.T) {
					t.Parallel()
					if step != fault.RCPT {
						script.To = ""
					}
					cannotOpenTheBreaker(t, script)
				})
			}
		}
	}
}

func cannotOpenTheBreaker(t *testing.T, script fault.Script) {
	s := play(t, script)
	o := facingAmply(script)
	if script.HoldBack && (script.Kind == fault.Silence || script.Kind == fault.Drip) {
		o.CommandTimeout = ample // MAIL's answer is not seen either, at first
	}
	o.Breaker = relay.Breaker{Failures: 1, Cooldown: time.Hour}
	r := newRelays(t, o, plain(s))
	want := relay.Unavailable
	if script.Kind == fault.Permanent {
		want = relay.Rejected
	}
	for range 3 {
		_, err := send(t.Context(), r, to("slow.example"))
		checkOutcome(t, err, want)
		if r.Stats()[0].Resting {
			t.Fatal("the breaker opened")
		}
	}
	if script.At == fault.RCPT {
		mustSend(t, r, to("honest.example"))
	}
}

// TestCircuit_SilenceAtMAIL_Opens: no recipient is to blame for that. Where
// MAIL and RCPT went out as one group that cannot be known at once.
func TestCircuit_SilenceAtMAIL_Opens(t *testing.T) {
	for name, c := range map[string]struct {
		script fault.Script
		sends  int
	}{
		"one by one": {fault.Script{NoPipelining: true}, 1},
		"in a group": {fault.Script{}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.script.At, c.script.Kind = fault.MAIL, fault.Silence
			s := play(t, c.script)
			o := facingAmply(c.script)
			o.Breaker = relay.Breaker{Failures: 1, Cooldown: time.Hour}
			r := newRelays(t, o, plain(s))
			for n := 1; n <= c.sends; n++ {
				_, err := send(t.Context(), r, letter())
				checkOutcome(t, err, relay.Unavailable)
				if got, want := r.Stats()[0].Resting, n == c.sends; got != want {
					t.Errorf("open after %d sends: %v, want %v", n, got, want)
				}
			}
		})
	}
}

// TestRCPT_SilentOnKeptConnection_TriedOnce: the kept connection had just answered MAIL,
// so there is nothing that a fresh one would mend.
func TestRCPT_SilentOnKeptConnection_TriedOnce(t *testing.T) {
	script := fault.Script{At: fault.RCPT, Kind: fault.Silence, To: "slow.example"}
	s := play(t, script)
	r := newRelays(t, facingAmply(script), plain(s))
	mustSend(t, r, to("honest.example"))
	_, err := send(t.Context(), r, to("slow.example"))
	checkOutcome(t, err, relay.Unavailable)
	if got := len(s.Received()); got != 1 {
		t.Errorf("%d connections, want 1", got)
	}
}

// TestPool_SilentDomain_HoldsHalf: mails to one domain hold half the connections
// at most, whatever subdomains they name, and fill half the queue at most.
func TestPool_SilentDomain_HoldsHalf(t *testing.T) {
	s := play(t, fault.Script{At: fault.RCPT, Kind: fault.Silence, To: "slow.example"})
	o := steady()
	o.MaxConns, o.MaxWaiting = 8, 16
	o.RCPTTimeout, o.Deadline = time.Hour, time.Hour
	r := newRelays(t, o, plain(s))
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for n := range 12 {
		group.Go(func() {
			_, err := send(ctx, r, to(fmt.Sprintf("sub%d.slow.example", n)))
			checkOutcome(t, err, relay.Unavailable)
		})
	}
	servertest.Eventually(t, "the domain has its share", func() bool {
		stats := r.Stats()[0]
		return stats.Open == 4 && stats.Waiting == 8
	})
	if _, err := send(ctx, r, to("slow.example")); !isBusy(err) {
		t.Errorf("one more: %v, want busy", err)
	}
	for range 3 {
		mustSend(t, r, to("honest.example"))
	}
	if got := r.Stats()[0]; got.Open != 5 || got.Waiting != 8 {
		t.Errorf("%+v, want the domain's 4 connections and one more", got)
	}
	cancel()
	group.Wait()
	servertest.Eventually(t, "all is given back", func() bool {
		stats := r.Stats()[0]
		return stats.Open == stats.Idle && stats.Waiting == 0
	})
	mustSend(t, r, to("honest.example"))
}
