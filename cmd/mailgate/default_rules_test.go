package main

import (
	"fmt"
	"testing"

	"github.com/mailgate/mailgate/mailer/sandbox"
)

// Without a rules file a visitor has a hundred sends a minute, to whatever mailboxes. Of
// IPv6 a visitor is a whole /64, and neither another address nor another /64 is in his way.
func TestAHundredAMinuteForAVisitor(t *testing.T) {
	for _, tt := range []struct{ name, visitor, same, other string }{
		{"IPv4", "203.0.113.7", "::ffff:203.0.113.7", "203.0.113.8"},
		{"IPv6", "2001:db8:0:1::7", "2001:db8:0:1:ffff:ffff:ffff:ffff", "2001:db8:0:2::7"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			relay := startRelay(t, sandbox.Options{})
			app := newClient(t, startServer(t, settingsFor(relay.URL(), "MAILGATE_DATA_DIR=:memory:")).URL, apiKey)
			sends := 0
			send := func(visitor string, status int) answer {
				t.Helper()
				sends++
				body := fmt.Sprintf(`{"email":"user%d@example.com","client_ip":%q}`, sends, visitor)
				return app.must(t, "POST", "/send-code", body, status)
			}
			for range 100 {
				send(tt.visitor, 200)
			}
			for _, visitor := range []string{tt.visitor, tt.same} {
				if a := send(visitor, 429); a.Body.Rule != "client-ip" || a.Body.Limit != "minute" || a.Body.WaitMS <= 0 || a.Body.WaitMS > 61_000 {
					t.Errorf("%s is refused by %+v", visitor, a.Body)
				}
			}
			send(tt.other, 200)
			if n := len(relay.List()); n != 101 {
				t.Errorf("%d mails", n)
			}
		})
	}
}
