package mailer_test

import (
	"context"
	"errors"
	"testing"

	"github.com/mailgate/mailgate/mailer"
	"github.com/mailgate/mailgate/mailer/sandbox/fault"
)

// Whoever sends a mail hears of it before the first octet of its text goes out, and not
// where it does not come so far.
func TestLeavingIsAsked(t *testing.T) {
	for name, tt := range map[string]struct {
		script fault.Script
		asked  int
	}{
		"taken":                {fault.Script{}, 1},
		"refused at MAIL":      {fault.Script{At: fault.MAIL, Kind: fault.Temporary, Times: 1}, 0},
		"refused at RCPT":      {fault.Script{At: fault.RCPT, Kind: fault.Permanent, Times: 1}, 0},
		"refused at DATA":      {fault.Script{At: fault.DATA, Kind: fault.Temporary, Times: 1}, 0},
		"cut at DATA":          {fault.Script{At: fault.DATA, Kind: fault.HangUp, Times: 1}, 0},
		"refused at the end":   {fault.Script{At: fault.Dot, Kind: fault.Temporary, Times: 1}, 1},
		"no answer at the end": {fault.Script{At: fault.Dot, Kind: fault.HangUp, Times: 1}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			relay := play(t, tt.script)
			relays := newRelays(t, steady(), plain(relay))
			mail, asked := letter(), 0
			mail.Leaving = func(ctx context.Context) error {
				if asked++; len(relay.Mails()) != 0 {
					t.Error("the mail had left")
				}
				if _, bounded := ctx.Deadline(); !bounded {
					t.Error("the question has no end")
				}
				return nil
			}
			relays.Send(context.Background(), mail)
			if asked != tt.asked {
				t.Errorf("asked %d times, want %d", asked, tt.asked)
			}
		})
	}
}

// A mail that is not let go never leaves, by no relay; and none is held to be failing.
func TestHeldBack(t *testing.T) {
	o := steady()
	o.Breaker.Failures = 1
	first, second := play(t, fault.Script{}), play(t, fault.Script{})
	relays := newRelays(t, o, plain(first), plain(second))
	held, why, asked := letter(), errors.New("the mark cannot be put"), 0
	held.Leaving = func(context.Context) error { asked++; return why }
	for range 3 {
		_, err := relays.Send(context.Background(), held)
		failure, ok := errors.AsType[*mailer.SendError](err)
		if !ok || failure.Outcome != mailer.Unavailable || !errors.Is(err, why) {
			t.Fatalf("the error is %v", err)
		}
	}
	receipt, err := relays.Send(context.Background(), letter())
	if err != nil || receipt.Relay != first.Addr() {
		t.Errorf("the next mail: %v, %v", receipt, err)
	}
	if asked != 3 || len(first.Mails()) != 1 || len(second.Mails()) != 0 {
		t.Errorf("asked %d times, %d and %d mails", asked, len(first.Mails()), len(second.Mails()))
	}
}

// Each relay that is tried is a moment at which the mail may leave.
func TestLeavingIsAskedForEachTry(t *testing.T) {
	first, second := play(t, fault.Script{At: fault.Dot, Kind: fault.Temporary, Times: 1}), play(t, fault.Script{})
	relays := newRelays(t, steady(), plain(first), plain(second))
	mail, asked := letter(), 0
	mail.Leaving = func(context.Context) error { asked++; return nil }
	if _, err := relays.Send(context.Background(), mail); err != nil || asked != 2 {
		t.Errorf("asked %d times, %v", asked, err)
	}
}
