package mailer_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/mailer"
	"github.com/mailgate/mailgate/mailer/sandbox/fault"
)

// TestARelayRestsUntilItAnswers, for whoever watches: also where another takes its mail, a
// rest is over, and nobody or one trial in vain has come to it since.
func TestARelayRestsUntilItAnswers(t *testing.T) {
	var now atomic.Int64
	first, second := play(t, fault.Script{At: fault.MAIL, Kind: fault.Temporary}), play(t, fault.Script{})
	o := steady()
	o.Now = now.Load
	o.Breaker = mailer.Breaker{Failures: 1, Cooldown: time.Second, MaxCooldown: time.Second}
	r := newRelays(t, o, plain(first), plain(second))
	for step, s := range []struct {
		after   int64 // milliseconds
		well    bool
		taken   *fault.Server // who takes a mail then; nobody is asked to, if nil
		resting bool
	}{
		{0, false, nil, false},
		{0, false, second, true},
		{999, false, second, true},
		{1, false, nil, true},
		{0, false, second, true},
		{10_000, true, nil, true},
		{0, true, first, false},
	} {
		now.Add(s.after)
		if s.well {
			first.Play(fault.Script{})
		}
		if s.taken != nil && mustSend(t, r, letter()).Relay != s.taken.Addr() {
			t.Errorf("step %d: the other relay took the mail", step)
		}
		if got := r.Stats()[0].Resting; got != s.resting {
			t.Errorf("step %d: resting %v, want %v", step, got, s.resting)
		}
	}
	if r.Stats()[1].Resting {
		t.Error("the second relay rests")
	}
}
