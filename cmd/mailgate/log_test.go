package main

import (
	"context"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
)

// stall has nothing read of the log any more, and sends so many requests that no line finds room.
func (p *process) stall(t testing.TB, app client) (resume func()) {
	t.Helper()
	resume = p.Log.Stall()
	t.Cleanup(resume)
	long := "/" + strings.Repeat("nothing", 10)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				if r, err := app.ask("GET", long, "", nil); err != nil || r.Status != 404 {
					t.Errorf("%v, status %d", err, r.Status)
					return
				}
			}
		})
	}
	all.Wait()
	return resume
}

// impatient is a client that gives up after ten seconds.
func impatient(t testing.TB, url, key string) client {
	c := newClient(t, url, key)
	c.http.Timeout = 10 * time.Second
	return c
}

// A reader of the log that stops reading delays no request, no check and no shutdown. Lines of requests
// that find no room are counted.
func TestLog_ReaderStalls_NothingWaits(t *testing.T) {
	t.Parallel()
	server := startServer(t, settingsFor(startRelay(t).URL(), inMemory, "MAILGATE_OPS_LISTEN=127.0.0.1:0", "MAILGATE_SHUTDOWN_GRACE=10s"))
	app, ops := impatient(t, server.URL, apiKey), impatient(t, "http://"+server.awaitLine(t, "serving", "ops_address"), "")
	resume := server.stall(t, app)
	for _, path := range []string{"/livez", "/readyz", "/metrics"} {
		ops.must(t, "GET", path, "", 200)
	}
	app.mustSend(t, "alice@example.com", 200)
	found := regexp.MustCompile(`\nmailgate_log_lines_dropped_total (\d+)\n`).FindStringSubmatch(ops.get(t, "/metrics").Raw)
	if found == nil || must.Get(strconv.Atoi(found[1]))(t) == 0 {
		t.Errorf("dropped lines: %q", found)
	}
	began := time.Now()
	server.Signal(t, syscall.SIGTERM)
	servertest.Eventually(t, "the process to end", server.gone)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	resume()
	if status := server.End(t); status != exitOK {
		t.Errorf("exit status %d", status)
	}
}

// gone reports whether the process has ended, though nothing reads its log.
func (p *process) gone() bool { return p.Cmd.Process.Signal(syscall.Signal(0)) != nil }

// An operator's action waits for the log while nothing is read of it. Its line is
// written then.
func TestAudit_ReaderStalls_ActionWaits(t *testing.T) {
	t.Parallel()
	server := startServer(t, settingsFor(startRelay(t).URL(), inMemory))
	app, admin := impatient(t, server.URL, apiKey), newClient(t, server.URL, adminKey)
	app.mustSend(t, "alice@example.com", 200)
	resume := server.stall(t, app)
	answered := make(chan reply, 1)
	go func() {
		r, _ := admin.ask("POST", "/admin/mailboxes/alice@example.com/reset", `{"reason":"ticket-4711"}`, nil)
		answered <- r
	}()
	select {
	case r := <-answered:
		t.Errorf("answered %d %s", r.Status, r.Raw)
	case <-time.After(500 * time.Millisecond):
	}
	app.mustSend(t, "alice@example.com", 429) // nothing was done
	resume()
	if r := <-answered; r.Status != 200 {
		t.Errorf("answered %d %s", r.Status, r.Raw)
	}
	if reason := server.awaitLine(t, "mailbox reset", "reason"); reason != "ticket-4711" {
		t.Errorf("the audit log has the reason %q", reason)
	}
}

// Past the grace the process ends, whatever does not.
func TestServe_CloseHangs_EndsAfterTheGrace(t *testing.T) {
	t.Parallel()
	c := configOf(t, settingsFor(startRelay(t).URL(), inMemory, "MAILGATE_SHUTDOWN_GRACE=1s"))
	p := must.Get(build(t.Context(), c, newLogging(c, newLogOutput(&servertest.Log{}))))(t)
	at := listeners{main: must.Get(net.Listen("tcp", "127.0.0.1:0"))(t), ops: hanging{must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)}}
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- p.serve(ctx, at, nil) }()
	newClient(t, "http://"+at.ops.Addr().String(), "").must(t, "GET", "/livez", "", 200)
	cancel()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "the shutdown did not finish within 1s") {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("it does not end")
	}
}

type hanging struct{ net.Listener }

func (hanging) Close() error { select {} }
