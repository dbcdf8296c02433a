package main

import (
	"fmt"
	"net"
	"testing"

	"github.com/mailgate/mailgate/mailer/sandbox"
	"github.com/mailgate/mailgate/redisstore/redistest"
)

// follow starts a replica of a server.
func follow(t *testing.T, master *redistest.Server) *redistest.Server {
	t.Helper()
	host, port, err := net.SplitHostPort(master.Addr)
	if err != nil {
		t.Fatal(err)
	}
	return redistest.Alone(t, "replicaof "+host+" "+port)
}

// A strict server sends no mail that a replica has not confirmed, whenever the replica is
// missing: before there is one, and after it was killed.
func TestStrictDurability(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, sandbox.Options{})
	master := redistest.Alone(t, "appendonly yes", "repl-diskless-sync-delay 0")
	server := startServer(t, settingsFor(relay.URL(), "MAILGATE_REDIS_URL="+master.URL(), "MAILGATE_REDIS_CONFIRM=1", shared))
	app := newClient(t, server.URL, apiKey)
	mails, tries := 0, 0
	sent := func() bool {
		tries++
		a, err := app.sendCode(fmt.Sprintf("strict%d@example.com", tries))
		if err != nil {
			t.Fatal(err)
		}
		if a.Status == 200 {
			mails++
		} else if a.Status != 503 || a.Body.Type != "urn:mailgate:problem:store-unavailable" {
			t.Fatalf("without a replica: %d %+v", a.Status, a.Body)
		}
		if n := len(relay.List()); n != mails {
			t.Fatalf("%d mails, %d confirmed", n, mails)
		}
		return a.Status == 200
	}
	if sent() {
		t.Error("sent before there is a replica")
	}
	app.must(t, "GET", "/readyz", "", 503)
	replica := follow(t, master)
	eventually(t, "a confirmed send", sent)
	eventually(t, "readiness", func() bool {
		a, err := app.ask("GET", "/readyz", "")
		return err == nil && a.Status == 200
	})
	replica.Kill()
	if sent() {
		t.Error("sent with the replica killed")
	}
	app.must(t, "GET", "/readyz", "", 503)
	replica.Restart()
	eventually(t, "a confirmed send again", sent)
}
