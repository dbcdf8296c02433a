package relay_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/mailer/relay"
)

// TestError_Deferred: what ended at the recipient is told apart from a relay's trouble, and only
// where there was no other.
func TestError_Deferred(t *testing.T) {
	at := func(step fault.Step, kind fault.Kind) fault.Script { return fault.Script{At: step, Kind: kind} }
	later, down := at(fault.RCPT, fault.Temporary), at(fault.Banner, fault.HangUp)
	for name, c := range map[string]struct {
		relays   []fault.Script
		resting  bool // the first, from before
		deferred bool
	}{
		"4xx to the recipient":     {relays: []fault.Script{later}, deferred: true},
		"421 to the recipient":     {relays: []fault.Script{at(fault.RCPT, fault.Leaving)}, deferred: true},
		"by both":                  {relays: []fault.Script{later, later}, deferred: true},
		"the first is down":        {relays: []fault.Script{down, later}},
		"the first is left alone":  {relays: []fault.Script{down, later}, resting: true, deferred: true},
		"both are left alone":      {relays: []fault.Script{down, down}, resting: true},
		"the second is down":       {relays: []fault.Script{later, down}},
		"5.7.1 to the recipient":   {relays: []fault.Script{at(fault.RCPT, fault.Barred)}, deferred: true},
		"5.7.1, then 4xx":          {relays: []fault.Script{at(fault.RCPT, fault.Barred), later}, deferred: true},
		"silent for the recipient": {relays: []fault.Script{at(fault.RCPT, fault.Silence)}, deferred: true},
		"silent, in one packet":    {relays: []fault.Script{{At: fault.RCPT, Kind: fault.Silence, HoldBack: true}}, deferred: true},
		"gone at the recipient":    {relays: []fault.Script{at(fault.RCPT, fault.HangUp)}, deferred: true},
		"4xx to the sender":        {relays: []fault.Script{at(fault.MAIL, fault.Temporary)}},
		"silent for the sender":    {relays: []fault.Script{{At: fault.MAIL, Kind: fault.Silence, NoPipelining: true}}},
		"5.7.1 to DATA":            {relays: []fault.Script{at(fault.DATA, fault.Barred)}},
		"5.7.1 to the mail":        {relays: []fault.Script{at(fault.Dot, fault.Barred)}},
		"4xx to DATA":              {relays: []fault.Script{at(fault.DATA, fault.Temporary)}},
		"4xx to the mail":          {relays: []fault.Script{at(fault.Dot, fault.Temporary)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var urls []string
			for _, script := range c.relays {
				urls = append(urls, plain(play(t, script)))
			}
			o := facing(c.relays[0])
			var log lockedBuffer
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			if c.relays[0].HoldBack {
				o.CommandTimeout = ample // MAIL's answer is not seen either
			}
			if c.resting {
				o.Breaker = relay.Breaker{Failures: 1, Cooldown: time.Hour}
			}
			r := newRelays(t, o, urls...)
			_, err := send(t.Context(), r, letter())
			if c.resting {
				_, err = send(t.Context(), r, letter())
			}
			checkOutcome(t, err, relay.Unavailable)
			if failure, ok := errors.AsType[*relay.Error](err); !ok || failure.Deferred != c.deferred {
				t.Errorf("deferred is %v, want %v: %v", failure.Deferred, c.deferred, err)
			}
			// Each try has a line: a send is deferred where all are.
			said := log.String()
			all := strings.Contains(said, "outcome=deferred") && !strings.Contains(said, "outcome=unavailable")
			if all != c.deferred && !c.resting { // before the rest there were other tries
				t.Errorf("deferred is to be %v, and the log says\n%s", c.deferred, said)
			}
		})
	}
}
