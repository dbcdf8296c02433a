package relay_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/relay"
)

// silent are relays that fall silent, each at another step.
func silent() []fault.Script {
	return []fault.Script{
		{At: fault.Banner, Kind: fault.Silence},
		{At: fault.EHLO, Kind: fault.Silence},
		{At: fault.MAIL, Kind: fault.Silence, NoPipelining: true},
		{At: fault.DATA, Kind: fault.Silence},
		{At: fault.Dot, Kind: fault.Silence},
	}
}

func wantAtSilence(script fault.Script) relay.Outcome {
	if script.At == fault.Dot {
		return relay.Unknown
	}
	return relay.Unavailable
}

// TestCircuit_MailOutOfTime_StaysClosed: the relay had little of the time it
// is allowed, so its silence says nothing. Otherwise whoever makes mails wait
// until their time is nearly up could open the breaker.
func TestCircuit_MailOutOfTime_StaysClosed(t *testing.T) {
	for _, script := range silent() {
		t.Run(string(script.At), func(t *testing.T) {
			t.Parallel()
			s := play(t, script)
			o := unhurried()
			o.Breaker = relay.Breaker{Failures: 1, Cooldown: time.Hour}
			r := newRelays(t, o, plain(s))
			short, cancel := context.WithTimeout(t.Context(), time.Second+patience)
			defer cancel()
			_, err := send(short, r, letter())
			checkOutcome(t, err, wantAtSilence(script))
			if len(s.Received()) == 0 {
				t.Error("the relay was not asked")
			}
			if r.Stats()[0].Resting {
				t.Error("the breaker opened")
			}
		})
	}
}

// TestCircuit_SilentRelay_Opens, also where a send may not take as long as one
// step may: else it would cost every mail all of its time.
func TestCircuit_SilentRelay_Opens(t *testing.T) {
	for _, script := range silent() {
		t.Run(string(script.At), func(t *testing.T) {
			t.Parallel()
			o := steady()
			o.Deadline = 8 * patience // half of it is ample for coming to the step that is silent
			o.Breaker = relay.Breaker{Failures: 1, Cooldown: time.Hour}
			r := newRelays(t, o, plain(play(t, script)))
			_, err := send(t.Context(), r, letter())
			checkOutcome(t, err, wantAtSilence(script))
			if !r.Stats()[0].Resting {
				t.Error("the breaker did not open")
			}
		})
	}
}

// unhurried are settings under which the caller's context alone decides.
func unhurried() relay.Options {
	o := steady()
	o.Deadline = 10 * hanging
	return o
}

// TestBegin_TooLate_Busy: with little time left nothing is begun that could not be
// ended. The mail is turned away while there is still time to say so.
func TestBegin_TooLate_Busy(t *testing.T) {
	late := func(t *testing.T, r *relay.Relays, after time.Duration) {
		t.Helper()
		var err error
		var left time.Duration
		for range 3 { // a busy machine may use up what is left, but not each time
			end := time.Now().Add(after)
			ctx, cancel := context.WithDeadline(t.Context(), end)
			_, err = send(ctx, r, letter())
			left = time.Until(end)
			cancel()
			if isBusy(err) && left > after/20 {
				return
			}
		}
		t.Errorf("err = %v with %v left, want busy with time to say so", err, left)
	}
	t.Run("in line for a connection", func(t *testing.T) {
		s := play(t, fault.Script{At: fault.Dot, Kind: fault.Silence})
		o := unhurried()
		o.MaxConns, o.FinalDotTimeout = 1, time.Hour
		r := newRelays(t, o, plain(s))
		holder, release := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { send(holder, r, letter()) })
		servertest.Eventually(t, "the only connection is taken", func() bool { return len(s.Mails()) == 1 })
		late(t, r, 3*time.Second)
		release()
		group.Wait()
	})
	t.Run("in the line of the pace", func(t *testing.T) {
		var paced atomic.Int32
		o := unhurried()
		o.Pace, o.Now = relay.Pace{PerSecond: 0.1, Queue: 1}, func() int64 { return 0 }
		o.Hooks.Paced = func(time.Duration) { paced.Add(1) }
		r := newRelays(t, o, plain(play(t, fault.Script{})))
		mustSend(t, r, letter())
		late(t, r, 10500*time.Millisecond) // its turn comes after 10 s
		if paced.Load() != 1 {
			t.Error("it waited for its turn")
		}
	})
}

// TestBegin_TooLate_NoSecondTry: neither another connection nor another relay is begun
// when the first took nearly all the time there was.
func TestBegin_TooLate_NoSecondTry(t *testing.T) {
	for name, script := range map[string]fault.Script{
		"another relay":      {At: fault.Banner, Kind: fault.Silence},
		"another connection": {At: fault.MAIL, Kind: fault.Silence},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := play(t, fault.Script{}), play(t, fault.Script{})
			o := unhurried()
			o.CommandTimeout = time.Second
			r := newRelays(t, o, plain(first), plain(second))
			if script.At == fault.MAIL {
				mustSend(t, r, letter())
			}
			first.Play(script)
			ctx, cancel := context.WithTimeout(t.Context(), 1100*time.Millisecond)
			defer cancel()
			_, err := send(ctx, r, letter())
			checkOutcome(t, err, relay.Unavailable)
			if one, other := len(first.Received()), len(second.Received()); one != 1 || other != 0 {
				t.Errorf("%d connections to the first relay and %d to the second, want 1 and 0", one, other)
			}
		})
	}
}
