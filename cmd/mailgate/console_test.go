package main

import (
	"encoding/json"
	"testing"

	"github.com/mailgate/mailgate/mailer/sandbox"
)

// What the console asks, it is told from either store: a mailbox, other tiers on what is
// on record, the figures, and a reset, after which the mailbox is on record no more.
func TestConsoleOnEachStore(t *testing.T) {
	onEachStore(t, func(t *testing.T, environ ...string) {
		relay := startRelay(t, sandbox.Options{})
		server := startServer(t, settingsFor(relay.URL(), append(environ, "MAILGATE_TIERS=minute=5/60s,hour=20/1h")...))
		app, operator := newClient(t, server.URL, apiKey), newClient(t, server.URL, adminKey)
		for _, email := range []string{"alice@example.com", "Alice+1@example.com", "alice@example.com", "bob@example.com"} {
			app.mustSend(t, email, 200)
		}
		if found := operator.must(t, "GET", "/admin/mailboxes/alice@example.com", "", 200); len(found.Body.Sends) != 3 {
			t.Errorf("alice: %+v", found.Body)
		}
		if got := tried(t, operator, "short=2/60s,hour=2/1h"); got.Mailboxes != 2 || got.Sends != 4 || got.Refused != 1 || got.Affected != 1 || !got.Complete {
			t.Errorf("two a minute: %+v", got)
		}
		if got := tried(t, operator, "short=1/60s"); got.Refused != 2 || len(got.Limits) != 1 || got.Limits[0] != (triedTier{"short", 2}) {
			t.Errorf("one a minute: %+v", got)
		}
		operator.must(t, "POST", "/admin/what-if", `{"tiers":"short=0/60s"}`, 422)
		var figures struct {
			Sends  map[string]int
			Resets int
			Ready  bool
		}
		operator.must(t, "POST", "/admin/mailboxes/alice@example.com/reset", `{"reason":"ticket 4711"}`, 200)
		operator.read(t, "GET", "/admin/figures", "", &figures)
		if figures.Sends["sent"] != 4 || figures.Resets != 1 || !figures.Ready {
			t.Errorf("figures: %+v", figures)
		}
		if got := tried(t, operator, "short=1/60s"); got.Mailboxes != 1 || got.Sends != 1 || got.Refused != 0 {
			t.Errorf("after the reset: %+v", got)
		}
	})
}

// A trial is the answer to what other tiers would have refused.
type trial struct {
	Mailboxes, Sends, Refused, Affected int
	Complete                            bool
	Limits                              []triedTier
}

type triedTier struct {
	Name    string
	Refused int
}

func tried(t testing.TB, operator client, tiers string) (got trial) {
	t.Helper()
	operator.read(t, "POST", "/admin/what-if", `{"tiers":"`+tiers+`"}`, &got)
	return got
}

// read asks, and reads an answer that is of no sender's.
func (c client) read(t testing.TB, method, path, body string, into any) {
	t.Helper()
	a, err := c.fetch(nil, method, path, body)
	if err != nil || a.Status != 200 || json.Unmarshal([]byte(a.Raw), into) != nil {
		t.Fatalf("%s %s: %v, status %d: %s", method, path, err, a.Status, a.Raw)
	}
}
