package relay_test

import (
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/mailer/relay"
)

// TestCircuit_Cooldown_DoublesUntilAnswered, each time that it was tried in vain for twice as long, and for
// whoever watches also where another takes its mail, a rest is over and nobody has come since.
func TestCircuit_Cooldown_DoublesUntilAnswered(t *testing.T) {
	var now atomic.Int64
	first, second := play(t, fault.Script{At: fault.Banner, Kind: fault.HangUp}), play(t, fault.Script{})
	var told []bool
	var log lockedBuffer
	o := steady()
	o.Now = now.Load
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	o.Breaker = relay.Breaker{Failures: 2, Cooldown: time.Second}
	o.Hooks.Circuit = func(_ string, open bool) { told = append(told, open) }
	r := newRelays(t, o, plain(first), plain(second))
	for step, s := range []struct {
		after   int64 // milliseconds
		well    bool
		taken   *fault.Server // who takes a mail then; nobody is asked to, if nil
		asked   int           // how often the first was by then
		resting bool
	}{
		{0, false, nil, 0, false},
		{0, false, second, 1, false},
		{0, false, second, 2, true},
		{999, false, second, 2, true},
		{1, false, nil, 2, true},
		{0, false, second, 3, true},
		{1999, false, second, 3, true},
		{1, true, nil, 3, true},
		{0, true, first, 4, false},
	} {
		now.Add(s.after)
		if s.well {
			first.Play(fault.Script{})
		}
		if s.taken != nil && mustSend(t, r, letter()).Relay != s.taken.Addr() {
			t.Errorf("step %d: the other relay took the mail", step)
		}
		if got := len(first.Received()); got != s.asked {
			t.Errorf("step %d: the first was asked %d times, want %d", step, got, s.asked)
		}
		if got := r.Stats()[0].Resting; got != s.resting {
			t.Errorf("step %d: resting %v, want %v", step, got, s.resting)
		}
	}
	if r.Stats()[1].Resting || !slices.Equal(told, []bool{true, false}) {
		t.Errorf("the second rests: %v; it was told %v", r.Stats()[1].Resting, told)
	}
	if text := log.String(); strings.Count(text, "circuit breaker opened") != 1 || strings.Count(text, "circuit breaker closed") != 1 {
		t.Errorf("the log says\n%s", text)
	}
}
