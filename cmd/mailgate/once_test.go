package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

// A double click, and a proxy that asks again: one mail, and one answer.
func TestOnceByKey(t *testing.T) {
	onEachStore(t, func(t *testing.T, environ ...string) {
		relay := startRelay(t, sandbox.Options{})
		server := startServer(t, settingsFor(relay.URL(), environ...))
		app := newClient(t, server.URL, apiKey)
		clicks := make(chan answer, 2)
		for range cap(clicks) {
			go func() {
				a, err := app.once("click", "alice@example.com")
				if err != nil {
					t.Error(err)
				}
				clicks <- a
			}()
		}
		for range cap(clicks) {
			if a := <-clicks; a.Status != 200 && a.Status != 409 {
				t.Errorf("a click: %d %+v", a.Status, a.Body)
			}
		}
		for range 3 {
			a, err := app.once("click", "alice@example.com")
			if err != nil || a.Status != 200 || a.Header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("again: %v %d %+v", err, a.Status, a.Body)
			}
		}
		oneMail(t, server, relay, "alice@example.com", 1)
	})
}

// oneMail fails the test unless so many mails are at the relay for one charge.
func oneMail(t testing.TB, server *process, relay *sandbox.Server, email string, mails int) {
	t.Helper()
	found := 0
	for _, mail := range relay.List() {
		if mail.To[0] == email {
			found++
		}
	}
	if charged := len(sends(t, server, email)); found != mails || charged != 1 {
		t.Errorf("%d mails and %d charges, want %d and 1", found, charged, mails)
	}
}

// sends are the ids of what a mailbox was charged.
func sends(t testing.TB, server *process, email string) (ids []string) {
	t.Helper()
	for _, one := range newClient(t, server.URL, adminKey).must(t, "GET", "/admin/mailboxes/"+email, "", 200).Body.Sends {
		ids = append(ids, one.ID)
	}
	return ids
}

// begun starts a send with a key, whose answer nobody will get.
func begun(t testing.TB, server *process, key, email string) {
	app := newClient(t, server.URL, apiKey)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = app.once(key, email) // the server is killed under it
	}()
	t.Cleanup(func() { <-gone })
	servertest.Eventually(t, "the send is charged", func() bool { return len(sends(t, server, email)) > 0 })
}

// killed ends the server at once.
func killed(t testing.TB, server *process) {
	t.Helper()
	server.signal(t, syscall.SIGKILL)
	server.end(t)
}

// outlasted asks again for as long as the killed server's request is in flight.
func outlasted(t testing.TB, server *process, key, email string) answer {
	t.Helper()
	app := newClient(t, server.URL, apiKey)
	for deadline := time.Now().Add(patience); ; time.Sleep(500 * time.Millisecond) {
		a, err := app.once(key, email)
		if err != nil {
			t.Fatal(err)
		}
		if a.Status != 409 || time.Now().After(deadline) {
			return a
		}
	}
}

// Killed between the charge and the mail, which waits for its turn: asked again with the
// same key, the mail is sent, once, and was charged once.
func TestKilledBeforeTheMail(t *testing.T) {
	t.Parallel() // each waits for a lease to end
	const turns = "rules: [{name: turns, by: all, algorithm: leaky-bucket, limit: turn=1/7s, queue: 1}]"
	onEachStore(t, func(t *testing.T, environ ...string) {
		t.Parallel()
		site := startSite(t, turns, environ...)
		site.app.mustSend(t, "first@example.com", 200)
		begun(t, site.process, "killed", "alice@example.com")
		if before := sends(t, site.process, "alice@example.com"); len(before) != 1 {
			t.Errorf("charged as %s", before)
		}
		killed(t, site.process)
		if len(site.relay.List()) != 1 {
			t.Fatal("the mail had been sent before the server was killed")
		}
		server := startServer(t, settingsFor(site.relay.URL(), append(environ, "MAILGATE_RULES="+site.rules)...))
		a := outlasted(t, server, "killed", "alice@example.com")
		if ids := sends(t, server, "alice@example.com"); a.Status != 200 || len(ids) != 1 || ids[0] != fmt.Sprint(a.Body.ID) {
			t.Errorf("asked again: %d %+v, charged as %s", a.Status, a.Body, ids)
		}
		if a := outlasted(t, server, "killed", "alice@example.com"); a.Status != 200 {
			t.Errorf("and again: %d %+v", a.Status, a.Body)
		}
		oneMail(t, server, site.relay, "alice@example.com", 1)
	})
}

// killedAt kills a server when its relay has heard a text and falls silent, and starts another
// that has a relay which answers.
func killedAt(t *testing.T, step fault.Step, heard string, environ ...string) (*process, *sandbox.Server) {
	t.Helper()
	silent := startFaulty(t, fault.Script{At: step, Kind: fault.Silence})
	first := startServer(t, settingsFor(plain(silent), environ...))
	begun(t, first, "killed", "alice@example.com")
	servertest.Eventually(t, fmt.Sprintf("the relay hears %q", heard), func() bool { return received(silent, heard) })
	killed(t, first)
	relay := startRelay(t, sandbox.Options{})
	return startServer(t, settingsFor(relay.URL(), environ...)), relay
}

// Killed in the middle of the conversation with a relay, which has heard whom the mail is
// for and nothing of its text: the next server sends it.
func TestKilledInTheConversation(t *testing.T) {
	t.Parallel() // each waits for a lease to end
	onEachStore(t, func(t *testing.T, environ ...string) {
		t.Parallel()
		server, relay := killedAt(t, fault.DATA, "DATA\r\n", environ...)
		if a := outlasted(t, server, "killed", "alice@example.com"); a.Status != 200 {
			t.Errorf("asked again: %d %+v", a.Status, a.Body)
		}
		oneMail(t, server, relay, "alice@example.com", 1)
	})
}

// Killed when the relay had the mail and had not answered: it is not sent again, and that
// nobody knows is what is said.
func TestKilledAfterTheMail(t *testing.T) {
	t.Parallel() // each waits for a lease to end
	onEachStore(t, func(t *testing.T, environ ...string) {
		t.Parallel()
		server, relay := killedAt(t, fault.Dot, "\r\n.\r\n", environ...)
		for range 2 {
			if a := outlasted(t, server, "killed", "alice@example.com"); a.Status != 504 || !strings.HasSuffix(a.Body.Type, ":delivery-unknown") || a.Body.Countdown == "" {
				t.Errorf("asked again: %d %+v", a.Status, a.Body)
			}
		}
		oneMail(t, server, relay, "alice@example.com", 0)
	})
}

// received reports whether a text came in over any connection.
func received(relay *fault.Server, text string) bool {
	for _, octets := range relay.Received() {
		if strings.Contains(string(octets), text) {
			return true
		}
	}
	return false
}
