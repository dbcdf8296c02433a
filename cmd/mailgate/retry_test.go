package main

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/servertest"
)

// sendOnce sends under an Idempotency-Key.
func (c client) sendOnce(key, email string) (reply, error) {
	return c.ask("POST", "/send-code", bodyFor(email), http.Header{"Idempotency-Key": {key}})
}

// A server is killed in the conversation with its relay. The next one knows of the request, so it
// sends no second email while the first may have left, and charges the mailbox once.
func TestRetry_ServerKilled_IsInFlight(t *testing.T) {
	t.Parallel()
	for step, heard := range map[fault.Step]string{fault.DATA: "DATA\r\n", fault.Dot: "\r\n.\r\n"} {
		t.Run(string(step), func(t *testing.T) {
			onEachStore(t, func(t *testing.T, environ func(string, ...string) []string) {
				silent, url := startFaulty(t, fault.Script{At: step, Kind: fault.Silence})
				killed := startServer(t, environ(url))
				first, gone := newClient(t, killed.URL, apiKey), make(chan struct{})
				go func() {
					defer close(gone)
					_, _ = first.sendOnce("key", "alice@example.com") // the server is killed meanwhile
				}()
				servertest.Eventually(t, fmt.Sprintf("the relay to hear %q", heard), func() bool { return received(silent, heard) })
				killed.stop(t, syscall.SIGKILL)
				<-gone

				relay := startRelay(t)
				server := startServer(t, environ(relay.URL()))
				r, err := newClient(t, server.URL, apiKey).sendOnce("key", "alice@example.com")
				if err != nil || r.Status != 409 || !strings.HasSuffix(r.Body.Type, ":idempotency-in-flight") {
					t.Errorf("asked again: %v %d %s", err, r.Status, r.Raw)
				}
				if charged := server.sends(t, "alice@example.com"); len(relay.List()) != 0 || len(charged) != 1 {
					t.Errorf("%d emails and %d charges, want 0 and 1", len(relay.List()), len(charged))
				}
			})
		})
	}
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
