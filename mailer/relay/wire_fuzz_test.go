package relay_test

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
)

var recipients = regexp.MustCompile(`(?mi)^RCPT TO:(.*)\r\n`)

// FuzzWire sends an email to whatever is taken for an address and reads the octets that
// reached the relay: one RCPT, for the canonical address and nothing beside it, and no CR or
// LF on its own.
func FuzzWire(f *testing.F) {
	for _, text := range []string{
		"Alice+x@Example.com", "a@bücher.example", "a|b`c{d}@odd.example", "/etc/passwd@odd.example", "-f@odd.example",
		"a@b.example> ORCPT=rfc822;x", "a@b.example\r\nRCPT TO:<x@y.example>", `"a b"@c.example`, "@relay.example:a@b.example", "a,b@c.example",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		to, err := address.Parse(text, address.Identity{})
		if err != nil {
			return
		}
		server := play(t, fault.Script{})
		m := compose(t, "Acme <no-reply@acme.example>", message.Request{To: to, Code: "123456", ID: "wire"})
		mustSend(t, newRelays(t, steady(), plain(server)), m)
		received := server.Received()
		if len(received) != 1 {
			t.Fatalf("%d connections", len(received))
		}
		found := recipients.FindAllSubmatch(received[0], -1)
		if len(found) != 1 || string(found[0][1]) != "<"+to.String()+">" {
			t.Fatalf("the recipients on the wire are %q, want %q alone", found, to.String())
		}
		if rest := bytes.ReplaceAll(received[0], []byte("\r\n"), nil); bytes.ContainsAny(rest, "\r\n") {
			t.Fatalf("a CR or LF on its own in %q", received[0])
		}
	})
}
