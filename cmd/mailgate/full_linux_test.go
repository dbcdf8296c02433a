package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

// A disk runs full under a server: it admits nobody and says at /readyz that it cannot
// serve; looks and denials go on; and once there is room all is well again.
func TestFullDisk(t *testing.T) {
	servertest.OnDisk(t, "size=64m", func(dir string) { serveOnFullDisk(t, dir) })
}

func serveOnFullDisk(t *testing.T, dir string) {
	relay := startRelay(t, sandbox.Options{})
	server := startServer(t, settingsFor(relay.URL(), "MAILGATE_DATA_DIR="+filepath.Join(dir, "data")))
	app := newClient(t, server.URL, apiKey)
	app.must(t, "GET", "/readyz", "", 200)
	app.mustSend(t, "known@example.com", 200)

	filler := filepath.Join(dir, "filler")
	servertest.Fill(t, filler)
	tries := 0
	servertest.Eventually(t, "a send to be refused", func() bool {
		tries++
		a, err := app.sendCode(fmt.Sprintf("early%d@example.com", tries))
		return err == nil && a.Status == 503
	})
	refused := len(relay.List())
	a := app.mustSend(t, "new@example.com", 503)
	if a.Body.Type != "urn:mailgate:problem:store-unavailable" || a.Header.Get("Retry-After") == "" {
		t.Errorf("a send: %+v", a.Body)
	}
	if ready := app.must(t, "GET", "/readyz", "", 503); ready.Body.Type != "urn:mailgate:problem:not-ready" {
		t.Errorf("readiness: %+v", ready.Body)
	}
	app.must(t, "GET", "/livez", "", 200)
	app.mustSend(t, "known@example.com", 429)
	app.must(t, "GET", "/mailboxes/known@example.com", "", 200)
	ops := newClient(t, server.URL, adminKey)
	ops.must(t, "POST", "/admin/mailboxes/known@example.com/reset", "", 503)
	if n := len(relay.List()); n != refused {
		t.Errorf("%d mails were sent meanwhile", n-refused)
	}

	if n := strings.Count(server.log.String(), `"msg":"the data directory takes no writes","cause":"the store is unavailable: no room is left: `); n != 1 {
		t.Errorf("%d lines of the log say that the disk is full:\n%s", n, server.log.String())
	}

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "readiness", func() bool {
		a, err := app.ask("GET", "/readyz", "")
		return err == nil && a.Status == 200
	})
	app.mustSend(t, "late@example.com", 200)
}
