package relay_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/relay"
)

// What goes over the wire to the first of two relays that fails in this way, and whether the
// second is asked.
func TestSend_FirstRelayFails_SecondTakesWhatNeverLeft(t *testing.T) {
	t.Parallel()
	const (
		over = relay.Outcome("") // the second relay takes it
		text = "EHLO MAIL RCPT DATA TEXT"
	)
	at := func(step fault.Step, kind fault.Kind) fault.Script {
		return fault.Script{At: step, Kind: kind, NoPipelining: true}
	}
	opened := at(fault.RCPT, fault.Temporary)
	opened.NoPipelining, opened.OpenForRefused = false, true
	refused := opened
	refused.Kind = fault.Permanent
	tr := newTrust(t)
	stripped, barred := fault.Script{TLS: tr.good(), NoSTARTTLS: true}, at(fault.AUTH, fault.Permanent)
	barred.TLS = tr.good()
	for name, c := range map[string]struct {
		script  fault.Script
		kept    bool // an email went over the connection before
		outcome relay.Outcome
		heard   string
	}{
		"EHLO refused":            {at(fault.EHLO, fault.Permanent), false, over, "EHLO"},
		"STARTTLS stripped":       {stripped, false, over, "EHLO"},
		"AUTH refused":            {barred, false, over, "EHLO STARTTLS EHLO AUTH"},
		"MAIL 4xx":                {at(fault.MAIL, fault.Temporary), false, over, "EHLO MAIL"},
		"MAIL 5xx":                {at(fault.MAIL, fault.Permanent), false, over, "EHLO MAIL"},
		"RCPT 4xx":                {at(fault.RCPT, fault.Temporary), false, over, "EHLO MAIL RCPT"},
		"RCPT 4xx, and a 354":     {opened, false, over, "EHLO MAIL RCPT DATA"},
		"RCPT 5xx":                {at(fault.RCPT, fault.Permanent), false, relay.Rejected, "EHLO MAIL RCPT"},
		"RCPT 5xx, and a 354":     {refused, false, relay.Rejected, "EHLO MAIL RCPT DATA"},
		"RCPT 5.7.1":              {at(fault.RCPT, fault.Barred), false, over, "EHLO MAIL RCPT"},
		"RCPT silent":             {at(fault.RCPT, fault.Silence), false, over, "EHLO MAIL RCPT"},
		"DATA 5xx":                {at(fault.DATA, fault.Permanent), false, relay.Rejected, "EHLO MAIL RCPT DATA"},
		"DATA 5.7.1":              {at(fault.DATA, fault.Barred), false, over, "EHLO MAIL RCPT DATA"},
		"SIZE too small":          {fault.Script{Size: 100}, false, over, "EHLO MAIL RCPT DATA"},
		"reset before the dot":    {at(fault.Content, fault.Reset), false, relay.Unknown, text},
		"4xx after the dot":       {at(fault.Dot, fault.Temporary), false, over, text},
		"421 after the dot":       {at(fault.Dot, fault.Leaving), false, over, text},
		"5xx after the dot":       {at(fault.Dot, fault.Permanent), false, relay.Rejected, text},
		"silent after the dot":    {at(fault.Dot, fault.Silence), false, relay.Unknown, text},
		"421 on a kept one":       {at(fault.DATA, fault.Leaving), true, over, text + " MAIL RCPT DATA, EHLO MAIL RCPT DATA"},
		"MAIL 4xx, kept":          {at(fault.MAIL, fault.Temporary), true, over, text + " MAIL QUIT, EHLO MAIL"},
		"MAIL 5xx, kept":          {at(fault.MAIL, fault.Permanent), true, over, text + " MAIL QUIT, EHLO MAIL"},
		"RCPT 5xx, 354, kept":     {refused, true, relay.Rejected, text + " MAIL RCPT DATA"},
		"RCPT 4xx, kept":          {at(fault.RCPT, fault.Temporary), true, over, text + " MAIL RCPT"},
		"RCPT silent, kept":       {at(fault.RCPT, fault.Silence), true, over, text + " MAIL RCPT"},
		"DATA 4xx, kept":          {at(fault.DATA, fault.Temporary), true, over, text + " MAIL RCPT DATA QUIT, EHLO MAIL RCPT DATA"},
		"reset after it, kept":    {at(fault.Dot, fault.Reset), true, relay.Unknown, text + " MAIL RCPT DATA TEXT"},
		"421 after the dot, kept": {at(fault.Dot, fault.Leaving), true, over, text + " MAIL RCPT DATA TEXT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := fault.Run(t, fault.Script{NoPipelining: c.script.NoPipelining}), fault.Run(t, fault.Script{})
			where := first.URL()
			if c.script.TLS != nil {
				where = tr.address("smtp", url.UserPassword("acme", "secret"), first.Addr())
			}
			r := newRelays(t, facing(c.script, ample), where, second.URL())
			if c.kept {
				mustSend(t, r, letter())
			}
			first.Play(c.script)
			receipt, err := send(t.Context(), r, letter())
			checkOutcome(t, err, c.outcome)
			if c.outcome == over && receipt.Relay != second.Addr() || c.outcome != over && len(second.Received()) > 0 {
				t.Errorf("%+v, and the second relay had %d connections", receipt, len(second.Received()))
			}
			if c.script.OpenForRefused { // it waits for a text, and could take the next email for it
				servertest.Eventually(t, "the connection is closed", func() bool { return first.Open() == 0 })
			}
			if heard := heardBy(first); heard != c.heard {
				t.Errorf("the first relay heard\n%s, want\n%s", heard, c.heard)
			}
		})
	}
}

// hold has an email take a connection of a relay that is silent after the final dot, until the
// returned function is called.
func hold(t *testing.T, r *relay.Relays, silent *fault.Server) (free func()) {
	t.Helper()
	ctx, release := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { send(ctx, r, letter()) })
	servertest.Eventually(t, "a connection is taken", func() bool { return len(silent.Mails()) == 1 })
	return func() {
		release()
		group.Wait()
	}
}

// An email does not wait for a slow relay until its time is up, beside another that has nothing
// to do.
func TestSend_FirstRelayBusy_SecondTakesIt(t *testing.T) {
	t.Parallel()
	slow, second := fault.Run(t, fault.Script{At: fault.Dot, Kind: fault.Silence}), fault.Run(t, fault.Script{})
	o := steady()
	o.MaxConns, o.FinalDot, o.Deadline = 1, time.Hour, time.Hour
	r := newRelays(t, o, slow.URL(), second.URL())
	defer hold(t, r, slow)()
	short, cancel := context.WithTimeout(t.Context(), 6*time.Second)
	defer cancel()
	if receipt, err := send(short, r, letter()); err != nil || receipt.Relay != second.Addr() {
		t.Errorf("%+v, %v; want that the second took it", receipt, err)
	}
}

// A relay that fails is not asked for the cooldown, until it answers. That can be seen all the
// time.
func TestCircuit_Cooldown_NotAsked(t *testing.T) {
	var now atomic.Int64
	first, second := fault.Run(t, fault.Script{At: fault.Banner, Kind: fault.HangUp}), fault.Run(t, fault.Script{})
	var log bytes.Buffer
	o := steady()
	o.Now, o.Breaker.Failures, o.Breaker.Cooldown = now.Load, 2, time.Second
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	r := newRelays(t, o, first.URL(), second.URL())
	for step, asked := range []int{1, 2, 2, 3} { // how often the first was by then
		now.Store([]int64{0, 0, 999, 1000}[step])
		if mustSend(t, r, letter()).Relay != second.Addr() || len(first.Received()) != asked || r.Stats()[0].CircuitOpen != (step > 0) {
			t.Errorf("step %d: the first was asked %d times; %+v", step, len(first.Received()), r.Stats()[0])
		}
	}
	first.Play(fault.Script{})
	now.Store(3000)
	if mustSend(t, r, letter()).Relay != first.Addr() || r.Stats()[0].CircuitOpen || r.Stats()[1].CircuitOpen {
		t.Errorf("%+v", r.Stats())
	}
	if text := log.String(); strings.Count(text, "circuit breaker opened") != 1 || strings.Count(text, "circuit breaker closed") != 1 {
		t.Errorf("the log says\n%s", text)
	}
}

// A relay that is back is found by connections without an email, long before the cooldown is over.
func TestCircuit_RelayBack_FoundWithoutAnEmail(t *testing.T) {
	var now atomic.Int64 // no cooldown ends
	first, second := fault.Run(t, fault.Script{At: fault.Banner, Kind: fault.HangUp}), fault.Run(t, fault.Script{})
	o := steady()
	o.Now, o.Breaker.Failures, o.Probe = now.Load, 2, 10*time.Millisecond
	r := newRelays(t, o, first.URL(), second.URL())
	for range 2 {
		if mustSend(t, r, letter()).Relay != second.Addr() {
			t.Fatal("the first took it")
		}
	}
	servertest.Eventually(t, "two probes", func() bool { return len(first.Received()) >= 4 })
	if !r.Stats()[0].CircuitOpen {
		t.Error("a probe that failed closed the circuit")
	}
	first.Play(fault.Script{})
	servertest.Eventually(t, "a closed circuit", func() bool { return !r.Stats()[0].CircuitOpen })
	if n := len(first.Mails()); mustSend(t, r, letter()).Relay != first.Addr() || n > 0 {
		t.Errorf("the first has taken %d emails, and not the next", n)
	}
}

// A relay that connects but hangs later is not tried with one email after another.
func TestCircuit_FailsAtDATA_ConnectionProvesNothing(t *testing.T) {
	var now atomic.Int64
	first, second := fault.Run(t, fault.Script{At: fault.DATA, Kind: fault.HangUp}), fault.Run(t, fault.Script{})
	o := steady()
	o.Now, o.Breaker.Failures, o.Probe = now.Load, 2, time.Millisecond
	r := newRelays(t, o, first.URL(), second.URL())
	for range 20 {
		mustSend(t, r, letter())
	}
	if n := len(first.Received()); n != 2 || !r.Stats()[0].CircuitOpen {
		t.Errorf("the first was asked %d times; %+v", n, r.Stats()[0])
	}
}

// With no relay to ask an email does not wait under the pace, and is told when to try again.
func TestCircuit_AllOpen_RefusedAtOnce(t *testing.T) {
	s := fault.Run(t, fault.Script{At: fault.Banner, Kind: fault.HangUp})
	o := steady()
	o.Now, o.Breaker.Failures, o.Breaker.Cooldown = func() int64 { return 0 }, 1, 7*time.Second
	o.Pace = relay.Pace{PerSecond: .001} // and the second email comes too soon
	r := newRelays(t, o, s.URL())
	for _, want := range []time.Duration{0, 7 * time.Second} {
		_, err := send(t.Context(), r, letter())
		checkOutcome(t, err, relay.Unavailable)
		if failure := err.(*relay.Error); failure.RetryAfter != want {
			t.Errorf("retry after %v, want %v", failure.RetryAfter, want)
		}
	}
	if got := len(s.Received()); got != 1 {
		t.Errorf("asked %d times, want 1", got)
	}
}

// An email that waited for a connection to a relay whose breaker opened meanwhile does not ask
// it.
func TestCircuit_OpensWhileWaiting_NotAsked(t *testing.T) {
	s := fault.Run(t, fault.Script{At: fault.Banner, Kind: fault.Silence})
	o := steady()
	o.MaxConns, o.Breaker.Failures, o.Breaker.Cooldown = 1, 1, time.Hour
	r := newRelays(t, o, s.URL())
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() { checkSend(t, t.Context(), r, letter(), relay.Unavailable) })
	}
	servertest.Eventually(t, "one is connected, and one waits", func() bool { return s.Open() == 1 && r.Stats()[0].Waiting == 1 })
	s.Cut()
	group.Wait()
	if got := len(s.Received()); got != 1 {
		t.Errorf("the relay was asked %d times, want 1", got)
	}
}
