package mailer_test

import (
	"context"
	"testing"
	"time"

	"github.com/mailgate/mailgate/mailer"
	"github.com/mailgate/mailgate/mailer/sandbox/fault"
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

func wantAtSilence(script fault.Script) mailer.Outcome {
	if script.At == fault.Dot {
		return mailer.Unknown
	}
	return mailer.Unavailable
}

// TestAMailOutOfTimeIsNoFailureOfTheRelay: the relay had little of the time it
// is allowed, so its silence says nothing. Otherwise whoever makes mails wait
// until their time is nearly up could open the breaker.
func TestAMailOutOfTimeIsNoFailureOfTheRelay(t *testing.T) {
	for _, script := range silent() {
		t.Run(string(script.At), func(t *testing.T) {
			t.Parallel()
			s := play(t, script)
			o := steady()
			o.Deadline = 10 * hanging
			o.Breaker = mailer.Breaker{Failures: 1, Cooldown: time.Hour}
			r := newRelays(t, o, plain(s))
			short, cancel := context.WithTimeout(t.Context(), time.Second+patience)
			defer cancel()
			_, err := r.Send(short, letter())
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

// TestASilentRelayIsLeftAlone, also where a send may not take as long as one
// step may: else it would cost every mail all of its time.
func TestASilentRelayIsLeftAlone(t *testing.T) {
	for _, script := range silent() {
		t.Run(string(script.At), func(t *testing.T) {
			t.Parallel()
			o := steady()
			o.Deadline = patience
			o.Breaker = mailer.Breaker{Failures: 1, Cooldown: time.Hour}
			r := newRelays(t, o, plain(play(t, script)))
			_, err := r.Send(t.Context(), letter())
			checkOutcome(t, err, wantAtSilence(script))
			if !r.Stats()[0].Resting {
				t.Error("the breaker did not open")
			}
		})
	}
}
