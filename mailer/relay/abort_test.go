package relay_test

import (
	"bytes"
	"testing"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/relay"
)

func begin(t *testing.T, relays *relay.Relays) *relay.Tx {
	t.Helper()
	tx, err := relays.Begin(t.Context(), parse(t, letter().From), parse(t, letter().To))
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

// No octet of the text goes out before Commit.
func TestBegin_EndsAt354(t *testing.T) {
	s := play(t, fault.Script{})
	tx := begin(t, newRelays(t, steady(), plain(s)))
	if heard := heardBy(s); heard != "EHLO MAIL RCPT DATA" {
		t.Errorf("the relay heard %s", heard)
	}
	if _, err := tx.Commit(t.Context(), letter().Bytes); err != nil || len(s.Mails()) != 1 {
		t.Errorf("%v, %d mails", err, len(s.Mails()))
	}
	tx.Abort()
	if heard := heardBy(s); heard != "EHLO MAIL RCPT DATA TEXT" || s.Open() != 1 {
		t.Errorf("after Abort the relay heard %s", heard)
	}
}

// An aborted mail never leaves, and the relay is not held to be failing.
func TestAbort_MailNeverLeaves(t *testing.T) {
	o := steady()
	o.Breaker.Failures = 1
	first, second := play(t, fault.Script{}), play(t, fault.Script{})
	relays := newRelays(t, o, plain(first), plain(second))
	for range 3 {
		begin(t, relays).Abort()
	}
	servertest.Eventually(t, "aborted connections are closed", func() bool { return first.Open() == 0 })
	if bytes.Contains(bytes.Join(first.Received(), nil), []byte("Subject")) || len(first.Mails()) != 0 {
		t.Errorf("the relay heard %s", heardBy(first))
	}
	receipt := mustSend(t, relays, letter())
	if receipt.Relay != first.Addr() || len(first.Mails()) != 1 || len(second.Received()) != 0 {
		t.Errorf("the next mail: %+v", receipt)
	}
}

// A relay that breaks off between Begin and Commit has certainly not got the mail, and
// another takes it.
func TestCommit_RelayGoneAfter354_NextRelayTakesIt(t *testing.T) {
	first, second := play(t, fault.Script{}), play(t, fault.Script{})
	relays := newRelays(t, steady(), plain(first), plain(second))
	tx := begin(t, relays)
	first.Close()
	receipt, err := tx.Commit(t.Context(), bytes.Repeat([]byte("0123456789\r\n"), 2<<20))
	// The first octets may go into the socket's buffer: only a text larger than any buffer
	// proves that its end never left.
	if err != nil || receipt.Relay != second.Addr() || len(second.Mails()) != 1 {
		t.Errorf("%+v, %v; %d mails", receipt, err, len(second.Mails()))
	}
}
