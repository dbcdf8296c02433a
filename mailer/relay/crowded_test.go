package relay_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/relay"
)

// atOnce sends so many mails at the same time, each to a domain of its own, and gives what
// came of each.
func atOnce(t *testing.T, r *relay.Relays, many int) []error {
	t.Helper()
	errs := make([]error, many)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { _, errs[i] = send(t.Context(), r, to(fmt.Sprintf("acme%d.example", i))) })
	}
	group.Wait()
	return errs
}

// TestCrowded_FewConnections_MailsWait: mails for which it has none wait for those that it
// took, and nothing of it is held against the relay.
func TestCrowded_FewConnections_MailsWait(t *testing.T) {
	s := play(t, fault.Script{MostConns: 2})
	var log lockedBuffer
	o := steady()
	o.MaxConns = 8
	o.Breaker = relay.Breaker{Failures: 1, Cooldown: time.Hour}
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	r := newRelays(t, o, plain(s))
	const many = 12
	for _, err := range atOnce(t, r, many) {
		if err != nil {
			t.Error(err)
		}
	}
	if mails, stats := len(s.Mails()), r.Stats()[0]; mails != many || stats.Resting {
		t.Errorf("%d mails of %d; %+v", mails, many, stats)
	}
	if text := log.String(); text != "" {
		t.Errorf("the log says\n%s", text)
	}
}

// TestCrowded_432_MailsWait: it takes any number of connections, but no mail over those beyond
// three, as Microsoft 365 does. Those mails wait for the others, too.
func TestCrowded_432_MailsWait(t *testing.T) {
	s := play(t, fault.Script{MostSending: 3})
	var log lockedBuffer
	o := steady()
	o.MaxConns = 8
	o.Breaker = relay.Breaker{Failures: 1, Cooldown: time.Hour}
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	r := newRelays(t, o, plain(s))
	const many = 24
	for _, err := range atOnce(t, r, many) {
		if err != nil {
			t.Error(err)
		}
	}
	taken := 0
	for _, mail := range s.Mails() {
		if !mail.Refused {
			taken++
		}
	}
	if stats := r.Stats()[0]; taken != many || stats.Resting || stats.Open > 3 {
		t.Errorf("%d mails of %d; %+v", taken, many, stats)
	}
	if text := log.String(); text != "" {
		t.Errorf("the log says\n%s", text)
	}
}

// TestCrowded_432Alone_Unavailable: with no other connection to wait for it is a mail put off.
func TestCrowded_432Alone_Unavailable(t *testing.T) {
	s := play(t, fault.Script{})
	r := newRelays(t, steady(), plain(s))
	holder := must(net.Dial("tcp", s.Addr()))(t)
	defer holder.Close()
	servertest.Eventually(t, "somebody else sends", func() bool { return s.Open() == 1 })
	s.Play(fault.Script{MostSending: 1})
	_, err := send(t.Context(), r, letter())
	checkFailure(t, err, relay.Unavailable, relay.StepFinalDot, &relay.Reply{Code: 432, Enhanced: "4.3.2", Message: "concurrent connections limit exceeded"})
	if n := len(s.Mails()); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
}

// TestCrowded_AfterCooldown_MoreAreAsked: a mail for which it had no connection waits for the one
// that it took. But soon after, more are asked for: it may have been that moment's trouble.
func TestCrowded_AfterCooldown_MoreAreAsked(t *testing.T) {
	s := play(t, fault.Script{At: fault.Dot, Kind: fault.Silence, MostConns: 1})
	var now atomic.Int64
	o := steady()
	o.Now = now.Load
	o.FinalDotTimeout = time.Hour
	o.Breaker.Cooldown = time.Second
	r := newRelays(t, o, plain(s))
	holder, release := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { send(holder, r, to("held.example")) })
	servertest.Eventually(t, "it has taken one", func() bool { return len(s.Mails()) == 1 })
	group.Go(func() {
		if _, err := send(t.Context(), r, to("waiting.example")); err != nil {
			t.Errorf("the mail that waited: %v", err)
		}
	})
	servertest.Eventually(t, "one waits", func() bool { return r.Stats()[0].Waiting == 1 })

	s.Play(fault.Script{})
	now.Add(1000)
	if _, err := send(t.Context(), r, to("later.example")); err != nil {
		t.Errorf("a mail after that moment: %v", err)
	}
	release()
	group.Wait()
}

// TestCrowded_NoneTaken_CircuitOpens: those that were sent away with others are tried again, and
// what they then hear is held against it.
func TestCrowded_NoneTaken_CircuitOpens(t *testing.T) {
	for _, step := range []fault.Step{fault.Banner, fault.EHLO} {
		for _, kind := range []fault.Kind{fault.Temporary, fault.Leaving} {
			t.Run(fmt.Sprintf("%s/%s", step, kind), func(t *testing.T) {
				t.Parallel()
				s := play(t, fault.Script{At: step, Kind: kind})
				o := steady()
				o.MaxConns = 8
				o.Breaker = relay.Breaker{Failures: 5, Cooldown: time.Hour}
				r := newRelays(t, o, plain(s))
				for _, err := range atOnce(t, r, 12) {
					checkOutcome(t, err, relay.Unavailable)
				}
				if got := r.Stats()[0]; !got.Resting || got.Open != 0 || got.Waiting != 0 {
					t.Errorf("%+v, want it left alone", got)
				}
				if got := len(s.Received()); got > 8+5 {
					t.Errorf("it was asked %d times", got)
				}
			})
		}
	}
}
