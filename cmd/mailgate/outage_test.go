package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

// mentions are the lines of a JSON log with these words in them.
func mentions(log *output, words string) (lines []map[string]any) {
	for text := range strings.Lines(log.String()) {
		var line map[string]any
		if strings.Contains(text, words) && json.Unmarshal([]byte(text), &line) == nil {
			lines = append(lines, line)
		}
	}
	return lines
}

// saysSo fails the test unless a node that is alone says so wherever somebody looks.
func saysSo(t *testing.T, server *process, app client) {
	t.Helper()
	a := app.must(t, "GET", "/readyz", "", 200)
	if !strings.Contains(a.Raw, `"degraded":true,"degraded_since":"20`) {
		t.Errorf("/readyz: %s", a.Raw)
	}
	if one, since := metric(t, server, "mailgate_store_degraded"), metric(t, server, "mailgate_store_degraded_since_timestamp_seconds"); one != "1" || since == "0" {
		t.Errorf("degraded %s since %s", one, since)
	}
	if debts := metric(t, server, "mailgate_store_journal"); debts == "0" {
		t.Error("no debts")
	}
	if a := app.must(t, "GET", "/mailboxes/alice@example.com", "", 200); !a.Body.Degraded {
		t.Errorf("a look: %s", a.Raw)
	}
}

// A node goes on while Redis is away, says so wherever somebody looks, and tells Redis what
// it missed.
func TestGoesOnWithoutRedis(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, sandbox.Options{})
	redis := redistest.Alone(t, "appendonly yes")
	environ := settingsFor(relay.URL(), "MAILGATE_REDIS_URL="+redis.URL(), "MAILGATE_REDIS_TIMEOUT=10s", "MAILGATE_TIERS=short=1/5s,hour=3/1h", shared)
	server, other := startServer(t, environ), startServer(t, environ)
	app, ops := newClient(t, server.URL, apiKey), newClient(t, server.URL, adminKey)
	if a := app.mustSend(t, "alice@example.com", 200); a.Body.Degraded {
		t.Errorf("with redis: %+v", a.Body)
	}
	redis.Kill()
	if a := app.mustSend(t, "alice@example.com", 429); !a.Body.Degraded || a.Body.Limit != "short" {
		t.Errorf("the limit that was reached with redis: %+v", a.Body)
	}
	var alone answer
	servertest.Eventually(t, "the end of the short window", func() (sent bool) {
		alone, _ = app.sendCode("alice@example.com")
		return alone.Status == 200
	})
	if !alone.Body.Degraded {
		t.Errorf("without redis: %+v", alone.Body)
	}
	saysSo(t, server, app)
	ops.must(t, "POST", "/admin/mailboxes/alice@example.com/reset", "", 503)
	ops.must(t, "POST", "/admin/rules/client-ip/reset", `{"subject":"198.51.100.7"}`, 503)

	redis.Restart()
	servertest.Eventually(t, "the end of the outage", func() bool { return metric(t, server, "mailgate_store_degraded") == "0" })
	if a := app.must(t, "GET", "/readyz", "", 200); strings.Contains(a.Raw, "degraded") {
		t.Errorf("/readyz: %s", a.Raw)
	}
	if n := metric(t, server, "mailgate_store_told_total"); n != metric(t, server, "mailgate_store_degraded_admissions_total") {
		t.Errorf("%s were written", n)
	}
	if ids := sends(t, other, "alice@example.com"); len(ids) != 2 {
		t.Errorf("the other node knows of %d sends", len(ids))
	}
	loggedOnce(t, server)
}

// loggedOnce fails the test unless one line tells of the beginning and one of the end, and
// each request that was answered alone says so.
func loggedOnce(t *testing.T, server *process) {
	t.Helper()
	began, ended := mentions(server.log, "Redis is away: this node"), mentions(server.log, "\"Redis is back")
	if len(began) != 1 || len(ended) != 1 || ended[0]["told"] == nil {
		t.Errorf("began %v, ended %v", began, ended)
	}
	if requests := mentions(server.log, `"degraded":true`); len(requests) < 3 {
		t.Errorf("requests in the log: %v", requests)
	}
}

// A Redis that comes back empty has forgotten, and is believed: it is told what was admitted
// meanwhile, and not what was before.
func TestRedisForgets(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, sandbox.Options{})
	redis := redistest.Alone(t)
	server := startServer(t, settingsFor(relay.URL(), "MAILGATE_REDIS_URL="+redis.URL(), "MAILGATE_REDIS_TIMEOUT=10s", shared))
	app := newClient(t, server.URL, apiKey)
	app.mustSend(t, "before@example.com", 200)
	redis.Kill()
	app.mustSend(t, "before@example.com", 429)
	alone := app.mustSend(t, "alone@example.com", 200)
	redis.Restart()
	servertest.Eventually(t, "the end of the outage", func() bool { return metric(t, server, "mailgate_store_degraded") == "0" })
	if ids := sends(t, server, "alone@example.com"); len(ids) != 1 || ids[0] != alone.Body.ID {
		t.Errorf("on record is %v, want %s", ids, alone.Body.ID)
	}
	app.mustSend(t, "alone@example.com", 429)
	if a := app.mustSend(t, "before@example.com", 200); a.Body.Degraded {
		t.Errorf("mailed anew: %+v", a.Body)
	}
}

// An outage that begins before the first request, at night, is told of though nobody asks,
// and a node that has met Redis when it started goes on.
func TestAnOutageThatNobodyMeetsWith(t *testing.T) {
	t.Parallel()
	for outage, gauge := range map[string]string{
		"continue": "mailgate_store_degraded", "refuse": "mailgate_store_refusing_since_timestamp_seconds",
	} {
		t.Run(outage, func(t *testing.T) {
			t.Parallel()
			relay := startRelay(t, sandbox.Options{})
			redis := redistest.Alone(t)
			server := startServer(t, settingsFor(relay.URL(), "MAILGATE_REDIS_URL="+redis.URL(), "MAILGATE_ON_STORE_OUTAGE="+outage, shared))
			servertest.Eventually(t, "the first look", func() bool { return metric(t, server, "mailgate_store_ready") == "1" })
			redis.Kill()
			servertest.Eventually(t, "the outage in the metrics", func() bool { return metric(t, server, gauge) != "0" })
			servertest.Eventually(t, "the outage in the log", func() bool { return len(mentions(server.log, "Redis is away: this node")) > 0 })
			want := map[string]string{"continue": "1", "refuse": "0"}[outage]
			servertest.Eventually(t, "whether it goes on", func() bool { return metric(t, server, "mailgate_store_ready") == want })
			newClient(t, server.URL, apiKey).mustSend(t, "alice@example.com", map[string]int{"continue": 200, "refuse": 503}[outage])
			if lines := mentions(server.log, "Redis is away: this node"); len(lines) != 1 {
				t.Errorf("the log has %v", lines)
			}
		})
	}
}

// A node that is killed in an outage and comes back before Redis does refuses what it had
// admitted, and tells Redis of it.
func TestKilledWithoutRedis(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, sandbox.Options{})
	redis := redistest.Alone(t, "appendonly yes")
	environ := settingsFor(relay.URL(), "MAILGATE_REDIS_URL="+redis.URL(), "MAILGATE_REDIS_TIMEOUT=10s", "MAILGATE_DATA_DIR="+t.TempDir(), shared)
	server := startServer(t, environ)
	redis.Kill()
	sent := newClient(t, server.URL, apiKey).mustSend(t, "alice@example.com", 200)
	killed(t, server)
	// One that cannot serve says so at once, whatever is owed.
	inVain := launch(t, append(environ, "MAILGATE_LISTEN="+relay.Addr()), "serve")
	if status := inVain.end(t); status != exitMisusage || !strings.Contains(inVain.log.String(), "cannot listen on "+relay.Addr()) {
		t.Errorf("on a port that is taken: %d\n%s", status, inVain.log)
	}

	server = startServer(t, environ)
	again := newClient(t, server.URL, apiKey).mustSend(t, "alice@example.com", 429)
	if !again.Body.Degraded || again.Body.Limit != "minute" {
		t.Errorf("after the restart: %+v", again.Body)
	}
	redis.Restart()
	servertest.Eventually(t, "the end of the outage", func() bool { return metric(t, server, "mailgate_store_degraded") == "0" })
	if ids := sends(t, server, "alice@example.com"); len(ids) != 1 || ids[0] != sent.Body.ID {
		t.Errorf("on record is %v, want %s", ids, sent.Body.ID)
	}
}

// A node that is stopped in an outage waits for Redis while it has time, and what it cannot
// write it says.
func TestStoppedWithoutRedis(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, sandbox.Options{})
	redis := redistest.Alone(t, "appendonly yes")
	environ := settingsFor(relay.URL(), "MAILGATE_REDIS_URL="+redis.URL(), "MAILGATE_REDIS_TIMEOUT=10s", shared)
	late, never := startServer(t, environ), startServer(t, append(environ, "MAILGATE_SHUTDOWN_GRACE=2s"))
	for _, server := range []*process{late, never} {
		newClient(t, server.URL, apiKey).mustSend(t, "bob@example.com", map[bool]int{true: 200, false: 429}[server == late])
	}
	redis.Kill()
	newClient(t, late.URL, apiKey).mustSend(t, "alice@example.com", 200)
	newClient(t, never.URL, apiKey).mustSend(t, "carol@example.com", 200)
	never.signal(t, syscall.SIGTERM)
	if status := never.end(t); status != 0 || len(mentions(never.log, "the next start does")) != 1 {
		t.Errorf("ended with %d:\n%s", status, never.log)
	}
	late.signal(t, syscall.SIGTERM)
	late.log.await(t, "draining", logged("draining", "grace"))
	select {
	case <-late.exited:
		t.Errorf("it did not wait:\n%s", late.log)
	case <-time.After(100 * time.Millisecond):
	}
	redis.Restart()
	if status := late.end(t); status != 0 || len(mentions(late.log, "not told all that this node decided alone")) != 0 {
		t.Errorf("ended with %d:\n%s", status, late.log)
	}
	check := startServer(t, environ)
	if ids := sends(t, check, "alice@example.com"); len(ids) != 1 {
		t.Errorf("on record is %v", ids)
	}
}

// A node that refuses has charged nothing for that: there is nothing to be given back when it is
// stopped.
func TestNothingIsOwedForWhatWasNotAsked(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, sandbox.Options{})
	redis := redistest.Alone(t)
	redis.Kill()
	server := startServer(t, settingsFor(relay.URL(), "MAILGATE_REDIS_URL="+redis.URL(), "MAILGATE_ON_STORE_OUTAGE=refuse", shared))
	app := newClient(t, server.URL, apiKey)
	app.mustSend(t, "alice@example.com", 503)
	app.must(t, "POST", "/send-code", `{"email":"bob@example.com","client_ip":"203.0.113.7"}`, 503)
	if a, err := app.once("away", "carol@example.com"); err != nil || a.Status != 503 {
		t.Errorf("with a key: %v %d %+v", err, a.Status, a.Body)
	}
	server.signal(t, syscall.SIGTERM)
	if status := server.end(t); status != 0 || len(mentions(server.log, "could not be given back")) != 0 {
		t.Errorf("ended with %d:\n%s", status, server.log)
	}
}
