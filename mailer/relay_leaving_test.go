package mailer_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/mailgate/mailgate/mailer"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
)

// Whoever sends a mail hears of it before the first octet of its text goes out.
func TestLeavingIsAsked(t *testing.T) {
	relay := play(t, fault.Script{})
	mail, asked := letter(), 0
	mail.Leaving = func(ctx context.Context) error {
		if asked++; bytes.Contains(relay.Received()[0], []byte("Subject")) {
			t.Error("the mail had left")
		}
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("the question has no end")
		}
		return nil
	}
	mustSend(t, newRelays(t, steady(), plain(relay)), mail)
	if asked != 1 {
		t.Errorf("asked %d times", asked)
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
