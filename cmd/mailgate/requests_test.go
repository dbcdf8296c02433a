package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/servertest"
)

// An operator finds in one step why there was no code, through whichever door it was asked for, also in
// what comes while they watch.
func TestOperator_Requests_SayWhyThereIsNoCode(t *testing.T) {
	t.Parallel()
	server := startServer(t, settingsFor(startRelay(t).URL(), inMemory, "MAILGATE_SECRET=sixteen-bytes-of-chance-or-more", "MAILGATE_SUBMISSION_LISTEN=127.0.0.1:0"))
	app, environ := newClient(t, server.URL, apiKey), operatorOf(server.URL)
	sent := app.mustSend(t, "alice@example.com", 200)
	if err := submit(server.awaitLine(t, "serving", "smtp_address")); err == nil || !strings.Contains(err.Error(), `of this mailbox reached`) {
		t.Fatalf("at the SMTP door: %v", err)
	}
	printed := does(t, environ, exitOK, "mailbox.minute for ", "requests", "Alice+x@example.com")
	header, printed, _ := strings.Cut(printed, "\n")
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	if !strings.HasPrefix(header, "TIME (UTC) ") || strings.Index(header, "MAILBOX") != strings.Index(lines[0], "4a939a9316") || strings.Index(header, "WHY") > strings.Index(lines[0], "250 2.0.0") {
		t.Errorf("the header is\n%s\n%s", header, lines[0])
	}
	if len(lines) != 2 || !strings.Contains(lines[0], "sent           http     4a939a9316 app        ["+sent.Body.ID.(string)+"]  250 2.0.0") || !strings.Contains(lines[1], "quota-exceeded smtp     4a939a9316") {
		t.Errorf("printed\n%s", printed)
	}
	if at, err := time.Parse(time.RFC3339, strings.Fields(lines[0])[0]); err != nil || at.Location() != time.UTC || time.Since(at).Abs() > time.Hour {
		t.Errorf("the time is printed as %s", lines[0])
	}
	if text := does(t, environ, exitOK, `"said":"minute 0 of 1 left, wait `, "requests", "--json", "--door=smtp", "--since=1m"); !strings.HasPrefix(text, `{"position":`) || strings.Count(text, "\n") != 1 {
		t.Errorf("one entry is printed as\n%s", text)
	}
	if none := does(t, environ, exitOK, "mailgate: no such request among the last 50,000\n", "requests", "--key", "other"); none != "" {
		t.Errorf("printed\n%s", none)
	}
	does(t, environ, exitFailure, "limit must be a number from 1 to 500.", "requests", "--limit=501")
	does(t, environ[:1], exitFailure, "(no key was sent; set MAILGATE_ADMIN_KEYS)", "requests", "--follow")

	watching := launch(t, nil, environ, "requests", "--follow", "--outcome=quota-exceeded")
	watching.prints(t, "quota-exceeded smtp")
	app.mustSend(t, "alice@example.com", 429)
	watching.prints(t, "quota-exceeded http")
	if status := server.Stop(t, syscall.SIGTERM); status != exitOK {
		t.Errorf("the server exits with %d while its requests are followed", status)
	}
	if status := watching.End(t); status != exitFailure {
		t.Errorf("status %d, though the server is gone", status)
	}
}

// prints waits until a command has printed a text.
func (p *process) prints(t testing.TB, text string) {
	t.Helper()
	servertest.Eventually(t, text, func() bool { return strings.Contains(p.Log.String(), text) })
}
