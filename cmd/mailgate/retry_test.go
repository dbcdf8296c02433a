package main

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/servertest"
)

// sendOnce sends under an Idempotency-Key.
func (c client) sendOnce(key, email string) (reply, error) {
	return c.ask("POST", "/send-code", bodyFor(email), http.Header{"Idempotency-Key": {key}})
}

// A server is killed in the conversation with its relay. The next one is asked again: it sends
// the email if its text had not left, and otherwise says that its delivery is unknown.
func TestRetry_ServerKilled_SendsAtMostOnce(t *testing.T) {
	for name, at := range map[string]struct {
		step   fault.Step
		heard  string
		status int
		mails  int
	}{
		"before the text": {fault.DATA, "DATA\r\n", 200, 1},
		"after the text":  {fault.Dot, "\r\n.\r\n", 504, 0},
	} {
		t.Run(name, func(t *testing.T) {
			onEachStore(t, func(t *testing.T, environ func(string, ...string) []string) {
				t.Parallel() // each waits for a lease to end
				silent, url := startFaulty(t, fault.Script{At: at.step, Kind: fault.Silence})
				killed := startServer(t, environ(url))
				first, gone := newClient(t, killed.URL, apiKey), make(chan struct{})
				go func() {
					defer close(gone)
					_, _ = first.sendOnce("key", "alice@example.com") // the server is killed meanwhile
				}()
				servertest.Eventually(t, fmt.Sprintf("the relay to hear %q", at.heard), func() bool { return received(silent, at.heard) })
				killed.stop(t, syscall.SIGKILL)
				<-gone

				relay := startRelay(t)
				server := startServer(t, environ(relay.URL()))
				for range 2 {
					r := afterLease(t, newClient(t, server.URL, apiKey))
					if r.Status != at.status || r.Status == 504 && !strings.HasSuffix(r.Body.Type, ":delivery-unknown") {
						t.Errorf("asked again: %d %s", r.Status, r.Raw)
					}
				}
				if mails, charged := mailsTo(relay, "alice@example.com"), server.sends(t, "alice@example.com"); len(mails) != at.mails || len(charged) != 1 {
					t.Errorf("%d emails and %d charges, want %d and 1", len(mails), len(charged), at.mails)
				}
			})
		})
	}
}

// afterLease asks again while the killed server's request is in flight.
func afterLease(t *testing.T, app client) (r reply) {
	t.Helper()
	servertest.Await(t, "the end of the lease", patience, func() error {
		var err error
		if r, err = app.sendOnce("key", "alice@example.com"); err != nil {
			t.Fatal(err)
		}
		if r.Status == 409 {
			<-time.After(500 * time.Millisecond) // each question is a request
			return fmt.Errorf("in flight")
		}
		return nil
	})
	return r
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
