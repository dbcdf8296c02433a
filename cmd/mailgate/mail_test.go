package main

import (
	"testing"

	"github.com/mailgate/mailgate/mailer/message"
)

// A relay is told a name that it can look up: the machine's, or the sender's domain.
func TestTheNameForRelays(t *testing.T) {
	from, err := message.ParseSender("no-reply@example.com")
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{
		"mail.example.org": "mail.example.org", "mail.example.org.": "mail.example.org", "post.bücher.example": "post.xn--bcher-kva.example",
		"web_1.example.org": "example.com", "10.1.2.3": "example.com", "a b.example.org": "example.com",
		"": "example.com", "laptop": "example.com", "mail.": "example.com", "localhost.localdomain": "example.com",
		"printer.local": "example.com", "ip-10-0-0-1.eu-west-1.compute.Internal": "example.com",
	} {
		if got := heloName(host, from); got != want {
			t.Errorf("%q: %s, want %s", host, got, want)
		}
	}
}
