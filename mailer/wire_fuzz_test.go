package mailer_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"regexp"
	"testing"

	"github.com/mailgate/mailgate/mailer"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
)

var recipients = regexp.MustCompile(`(?mi)^RCPT TO:(.*)\r\n`)

// FuzzWire sends a mail to whatever is taken for an address and reads the octets that
// reached the relay: one RCPT, for the canonical address and nothing beside it, and no
// CR or LF that stands alone.
func FuzzWire(f *testing.F) {
	for _, row := range addressRows(f) {
		f.Add(row.input)
	}
	composer := newComposer(f, "Acme <no-reply@acme.example>", nil, rand.Reader)
	f.Fuzz(func(t *testing.T, text string) {
		address, err := mailer.ParseAddress(text, mailer.Identity{})
		if err != nil {
			return
		}
		message, err := composer.Compose(mailer.Request{To: address, Code: "123456", ID: "wire"})
		if err != nil {
			t.Fatal(err)
		}
		server := play(t, fault.Script{})
		relays := newRelays(t, steady(), plain(server))
		if _, err := relays.Send(context.Background(), message); err != nil {
			t.Fatal(err)
		}
		received := server.Received()
		if len(received) != 1 {
			t.Fatalf("%d connections", len(received))
		}
		checkOctets(t, received[0], address.String())
	})
}

func checkOctets(t *testing.T, octets []byte, canonical string) {
	t.Helper()
	found := recipients.FindAllSubmatch(octets, -1)
	if len(found) != 1 || string(found[0][1]) != "<"+canonical+">" {
		t.Fatalf("the recipients on the wire are %q, want %q alone", found, canonical)
	}
	rest := bytes.ReplaceAll(octets, []byte("\r\n"), nil)
	if bytes.ContainsAny(rest, "\r\n") {
		t.Fatalf("a CR or LF stands alone in %q", octets)
	}
}
