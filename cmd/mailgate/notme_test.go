package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
)

// A template with the link needs the address that it leads to, and its emails then have it.
func TestServe_NotMe_NeedsPublicURL(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	servertest.Write(t, filepath.Join(dir, "code", "en", "text.txt"), "{{.Code}} {{.NotMe}}")
	relay := startRelay(t)
	environ := settingsFor(relay.URL(), inMemory, "MAILGATE_TEMPLATES="+dir)
	does(t, environ, exitMisusage, "MAILGATE_PUBLIC_URL: must be set, as the template code has {{.NotMe}}", "check-config")
	s := startServer(t, append(environ, "MAILGATE_PUBLIC_URL=https://mail.acme.example/"))
	app := newClient(t, s.URL, apiKey)
	app.mustSend(t, "alice@example.com", 200)
	_, link, _ := strings.Cut(relay.List()[0].Text, "https://mail.acme.example/not-me/")
	link, _, _ = strings.Cut(strings.TrimSpace(link), "\n")
	r := must.Get(newClient(t, s.URL, "").ask("POST", "/not-me/"+link, "", nil))(t)
	if r.Status != 200 || !strings.Contains(r.Raw, "These emails are stopped") {
		t.Errorf("the link answers %d %s", r.Status, r.Raw)
	}
	if r := app.mustSend(t, "Alice+x@example.com", 422); !strings.Contains(r.Raw, `"reason":"not-me"`) {
		t.Errorf("the next email is answered %s", r.Raw)
	}
}
