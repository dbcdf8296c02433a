package main

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/need"
	"github.com/mailgate/mailgate/internal/servertest"
)

// Without any key the program serves this machine, and says so.
func TestServe_NoKeys_ServesThisMachine(t *testing.T) {
	t.Parallel()
	relay := startRelay(t)
	server := startServer(t, []string{"MAILGATE_LISTEN=127.0.0.1:0", "MAILGATE_SMTP_URL=" + relay.URL(), "MAILGATE_FROM=a@acme.example", inMemory})
	keyless := newClient(t, server.URL, "")
	keyless.mustSend(t, "alice@example.com", 200)
	keyless.must(t, "POST", "/admin/mailboxes/alice@example.com/reset", "", 200)
	server.awaitLine(t, "no API keys are set: mailgate serves only programs on this machine and needs no key", "level")
}

func TestServe_NoAdminKeys_OperatorRoutesAreClosed(t *testing.T) {
	t.Parallel()
	server := startServer(t, settingsFor(startRelay(t).URL(), inMemory, "MAILGATE_ADMIN_KEYS="))
	newClient(t, server.URL, apiKey).mustSend(t, "alice@example.com", 200)
	for _, key := range []string{"", apiKey, adminKey} {
		newClient(t, server.URL, key).must(t, "POST", "/admin/mailboxes/alice@example.com/reset", "", 401)
	}
	does(t, operatorOf(server.URL), exitFailure, "No admin keys are set at this node", "show", "alice@example.com")
}

func TestServe_LookupsAndCountdowns_AreBounded(t *testing.T) {
	t.Parallel()
	server := startServer(t, settingsFor(startRelay(t).URL(), inMemory, "MAILGATE_LOOKUP_RATE=1"))
	app := newClient(t, server.URL, apiKey)
	for _, path := range []string{"/mailboxes/alice@example.com", "/countdown/none"} {
		servertest.Eventually(t, path+" to be refused", func() bool { return app.get(t, path).Status == 429 })
	}
}

// During the drain delay /readyz is 503 while all else is served, also at the address of metrics.
// The second SIGTERM ends the process at once.
func TestServe_Term_DrainsAndASecondOneEnds(t *testing.T) {
	t.Parallel()
	server := startServer(t, settingsFor(startRelay(t).URL(), inMemory, "MAILGATE_OPS_LISTEN=127.0.0.1:0", "MAILGATE_DRAIN_DELAY=50s", "MAILGATE_SHUTDOWN_GRACE=1m"))
	app, ops := newClient(t, server.URL, apiKey), newClient(t, "http://"+server.awaitLine(t, "serving", "ops_address"), "")
	app.must(t, "GET", "/readyz", "", 200)
	server.Signal(t, syscall.SIGTERM)
	servertest.Eventually(t, "/readyz to be 503", func() bool { return app.get(t, "/readyz").Status == 503 })
	app.mustSend(t, "alice@example.com", 200)
	ops.must(t, "GET", "/readyz", "", 503)
	ops.must(t, "GET", "/metrics", "", 200)
	if status := server.Stop(t, syscall.SIGTERM); status != -1 {
		t.Errorf("exit status %d, want the end by the signal", status)
	}
}

// The grace bounds the drain: longer requests are cut off, and the exit status says so.
func TestServe_TermDuringASend_WaitsForTheGrace(t *testing.T) {
	t.Parallel()
	relay := fault.Run(t, fault.Script{At: fault.Dot, Kind: fault.Silence})
	server := startServer(t, settingsFor(relay.URL(), inMemory, "MAILGATE_SHUTDOWN_GRACE=300ms"))
	app := newClient(t, server.URL, apiKey)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = app.sendOnce("key", "alice@example.com") // it is cut off
	}()
	servertest.Eventually(t, "the email at the relay", func() bool { return len(relay.Mails()) == 1 })
	if status := server.Stop(t, syscall.SIGTERM); status != exitFailure || len(server.Log.Lines("draining")) != 1 {
		t.Errorf("exit status %d", status)
	}
	<-answered
}

func TestServe_ListenerFails_Ends(t *testing.T) {
	t.Parallel()
	c := configOf(t, settingsFor(startRelay(t).URL(), inMemory))
	p := must.Get(build(t.Context(), c, newLogging(c, newLogOutput(&servertest.Log{}))))(t)
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	if err := p.serve(t.Context(), listeners{main: failing{listener}}, nil); err == nil || !strings.Contains(err.Error(), "serving: ") {
		t.Errorf("it ended with %v", err)
	}
}

type failing struct{ net.Listener }

func (failing) Accept() (net.Conn, error) { return nil, net.ErrClosed }

// A process that may open few files accepts fewer connections, says so, and leaves a key enough of them.
func TestServe_FewFiles_AcceptsFewerConnections(t *testing.T) {
	t.Parallel()
	const files = 400
	relay := startRelay(t)
	fewFiles := []string{"sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, files)}
	server := launch(t, fewFiles, settingsFor(relay.URL(), "MAILGATE_DATA_DIR="+t.TempDir()), "serve").serving(t)
	app := newClient(t, server.URL, apiKey)
	var all sync.WaitGroup
	for n := range files / 4 {
		all.Go(func() { app.mustSend(t, fmt.Sprintf("user%d@example.com", n), 200) })
	}
	all.Wait()
	warned := server.Log.Lines("fewer connections than max_connections")
	if len(warned) != 1 || warned[0]["connections"] != float64(files/2) {
		t.Errorf("the log says %v", warned)
	}
}

func TestServe_ReaderOfLogGone_Continues(t *testing.T) {
	t.Parallel()
	untilServing := []string{need.Program(t, "bash"), "-c", `exec "$0" "$@" 2> >(sed '/"serving"/q')`}
	server := launch(t, untilServing, settingsFor(startRelay(t).URL(), inMemory), "serve").serving(t)
	app := newClient(t, server.URL, apiKey)
	app.mustSend(t, "alice@example.com", 200)
	app.mustSend(t, "alice@example.com", 429)
	if status := server.Stop(t, syscall.SIGTERM); status != exitOK {
		t.Errorf("exit status %d", status)
	}
}

// Lines of requests wait for others, but not for long, and stay before what is logged after them.
func TestLog_Requests_InOrderAndInTime(t *testing.T) {
	out := &servertest.Log{}
	c, to := configOf(t, nil), newLogOutput(out)
	log, audit := newLogging(c, to).outcomes, newAudit(c, to)
	line := func(level slog.Level, n int) {
		log.Line(&ledger.Outcome{Level: level}, fmt.Appendf(nil, "{\"n\":%d}\n", n))
	}
	line(slog.LevelInfo, 1)
	audit.Info("reset", "n", 2)
	line(slog.LevelInfo, 3)
	line(slog.LevelWarn, 4)
	line(slog.LevelInfo, 5)
	servertest.Eventually(t, "the last line", func() bool { return strings.Count(out.String(), "\n") == 5 })
	for i, line := range strings.SplitAfter(strings.TrimSpace(out.String()), "\n") {
		if want := fmt.Sprintf(`"n":%d`, i+1); !strings.Contains(line, want) {
			t.Errorf("line %d is %s", i+1, line)
		}
	}
}

func TestAudit_EveryLogLevel_IsWritten(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{"json": `"audit":true`, "text": "audit=true"} {
		c, out := configOf(t, nil, "--log-level=error", "--log-format="+format), &servertest.Log{}
		log := newLogOutput(out)
		slog.New(newLogging(c, log).handler).Warn("not logged")
		newAudit(c, log).Info("reset")
		log.close()
		if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, want) {
			t.Errorf("the log has:\n%s", got)
		}
	}
}
