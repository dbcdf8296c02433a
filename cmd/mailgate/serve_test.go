package main

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

func startRelay(t testing.TB, options sandbox.Options) *sandbox.Server {
	t.Helper()
	relay, err := sandbox.Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := relay.Close(); err != nil {
			t.Error(err)
		}
	})
	return relay
}

// startFaulty starts a relay that misbehaves.
func startFaulty(t testing.TB, script fault.Script) *fault.Server {
	t.Helper()
	relay, err := fault.Start(script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { relay.Close() })
	return relay
}

func plain(relay *fault.Server) string { return "smtp://" + relay.Addr() + "?tls=none" }

// From the request to the mail, a denial, a look and a reset, through the program as
// users start it.
func TestServe(t *testing.T) {
	relay := startRelay(t, sandbox.Options{})
	server := startServer(t, settingsFor(relay.URL(), "MAILGATE_DATA_DIR="+t.TempDir()))
	app, ops := newClient(t, server.URL, apiKey), newClient(t, server.URL, adminKey)

	sent := app.mustSend(t, "Alice+one@example.com", 200)
	if sent.Body.Limit != "minute" || sent.Body.WaitMS != 60000 || sent.Body.ID == nil {
		t.Errorf("the first send: %+v", sent.Body)
	}
	mails := relay.List()
	if len(mails) != 1 || mails[0].To[0] != "Alice+one@example.com" || !strings.Contains(mails[0].Header.Get("From"), "no-reply@acme.example") {
		t.Errorf("the relay has %d mails", len(mails))
	}
	denied := app.mustSend(t, "alice+two@example.com", 429)
	if denied.Body.Limit != "minute" || denied.Body.WaitMS <= 0 || denied.Body.WaitMS > 60000 || denied.Header.Get("Retry-After") == "" {
		t.Errorf("the second: %+v", denied.Body)
	}
	if left := app.must(t, "GET", "/mailboxes/alice@example.com", "", 200); left.Body.WaitMS <= 0 {
		t.Errorf("a look: %+v", left.Body)
	}
	if reset := ops.must(t, "POST", "/admin/mailboxes/alice@example.com/reset", `{"reason":"a test"}`, 200); reset.Body.Cleared != 1 {
		t.Errorf("a reset cleared %d", reset.Body.Cleared)
	}
	var audit []map[string]any
	servertest.Eventually(t, "a line of the audit log", func() bool {
		audit = mentions(server.log, `"audit":true`)
		return len(audit) == 1
	})
	if line := audit[0]; line["key"] != "ops" || line["mailbox"] == "" || line["reason"] != "a test" {
		t.Errorf("the audit log: %v", line)
	}
	app.mustSend(t, "alice@example.com", 200)
	newClient(t, server.URL, "").mustSend(t, "bob@example.com", 401)
	server.signal(t, syscall.SIGTERM)
	if status := server.end(t); status != exitOK {
		t.Errorf("exit status %d:\n%s", status, server.log)
	}
	if n := len(relay.List()); n != 2 {
		t.Errorf("the relay has %d mails", n)
	}
}

// Without keys it serves, on loopback, and says so.
func TestServeWithoutKeys(t *testing.T) {
	relay := startRelay(t, sandbox.Options{})
	server := startServer(t, []string{"MAILGATE_LISTEN=127.0.0.1:0", "MAILGATE_SMTP_URL=" + relay.URL(), "MAILGATE_FROM=a@acme.example", "MAILGATE_DATA_DIR=:memory:"})
	anybody := newClient(t, server.URL, "")
	anybody.mustSend(t, "alice@example.com", 200)
	anybody.must(t, "POST", "/admin/mailboxes/alice@example.com/reset", "", 200)
	server.log.await(t, "the warning", logged("no api keys are set: only this machine is served, and no key is asked for", "level"))
}

// With keys for applications and none for operators, nobody is an operator.
func TestServeWithoutAdminKeys(t *testing.T) {
	relay := startRelay(t, sandbox.Options{})
	server := startServer(t, settingsFor(relay.URL(), "MAILGATE_DATA_DIR=:memory:", "MAILGATE_ADMIN_KEYS="))
	newClient(t, server.URL, apiKey).mustSend(t, "alice@example.com", 200)
	for _, key := range []string{"", apiKey, adminKey} {
		newClient(t, server.URL, key).must(t, "POST", "/admin/mailboxes/alice@example.com/reset", "", 401)
	}
}

// A key can look up so many mailboxes and no more, which costs other keys nothing.
func TestLookupRate(t *testing.T) {
	relay := startRelay(t, sandbox.Options{})
	for _, tt := range []struct{ rate, most int }{{1, lookupBurst}, {0, 100}} {
		server := startServer(t, settingsFor(relay.URL(), "MAILGATE_DATA_DIR=:memory:", fmt.Sprint("MAILGATE_LOOKUP_RATE=", tt.rate)))
		app, ops := newClient(t, server.URL, apiKey), newClient(t, server.URL, adminKey)
		found := 0
		for n := range 100 {
			a, err := app.ask("GET", fmt.Sprintf("/mailboxes/user%d@example.com", n), "")
			if err != nil {
				t.Fatal(err)
			}
			if a.Status == 200 {
				found++
			}
		}
		// Some places may have come back while the hundred were asked for.
		if found < tt.most || tt.rate > 0 && found > 50 {
			t.Errorf("at %d a second, %d of 100 were answered", tt.rate, found)
		}
		ops.must(t, "GET", "/admin/mailboxes/alice@example.com", "", 200)
	}
}

// One address cannot ask for countdowns without end.
func TestCountdownRate(t *testing.T) {
	relay := startRelay(t, sandbox.Options{})
	server := startServer(t, settingsFor(relay.URL(), "MAILGATE_DATA_DIR=:memory:", "MAILGATE_COUNTDOWN_RATE=1"))
	visitor := newClient(t, server.URL, "")
	refused := 0
	for range 50 {
		a, err := visitor.ask("GET", "/countdown/none", "")
		if err != nil {
			t.Fatal(err)
		}
		if a.Status == 429 {
			refused++
		}
	}
	if refused < 10 {
		t.Errorf("%d of 50 were refused", refused)
	}
}

// Three processes share one Redis: of two hundred requests at once for one mailbox,
// exactly one is a mail.
func TestThreeProcesses(t *testing.T) {
	const rounds, requests = 50, 200
	relay := startRelay(t, sandbox.Options{KeepMessages: 10 * rounds})
	redis := redistest.Alone(t)
	var clients []client
	for range 3 {
		server := startServer(t, settingsFor(relay.URL(), "MAILGATE_REDIS_URL="+redis.URL(), "MAILGATE_REDIS_TIMEOUT=10s", shared))
		clients = append(clients, newClient(t, server.URL, apiKey))
	}
	for round := range rounds {
		sent, denied := storm(t, clients, fmt.Sprintf("round%d@example.com", round), requests)
		if sent != 1 || denied != requests-1 {
			t.Fatalf("round %d: %d sent and %d denied of %d", round, sent, denied, requests)
		}
	}
	mails := map[string]int{}
	for _, mail := range relay.List() {
		mails[mail.To[0]]++
	}
	for to, n := range mails {
		if n != 1 {
			t.Errorf("%d mails to %s", n, to)
		}
	}
	if len(mails) != rounds {
		t.Errorf("mails to %d mailboxes, want %d", len(mails), rounds)
	}
}

// storm asks all servers at once for one mailbox and counts the answers.
func storm(t *testing.T, clients []client, email string, requests int) (sent, denied int64) {
	var yes, no atomic.Int64
	var group sync.WaitGroup
	begin := make(chan struct{})
	for i := range requests {
		group.Go(func() {
			<-begin
			a, err := clients[i%len(clients)].sendCode(email)
			switch {
			case err != nil:
				t.Error(err)
			case a.Status == 200:
				yes.Add(1)
			case a.Status == 429:
				no.Add(1)
			default:
				t.Errorf("status %d: %+v", a.Status, a.Body)
			}
		})
	}
	close(begin)
	group.Wait()
	return yes.Load(), no.Load()
}

// SIGTERM under load: whoever was answered 200 has exactly one mail, whoever was not
// has none, and the exit status is 0.
func TestTermUnderLoad(t *testing.T) {
	const clients, before = 16, 100
	relay := startRelay(t, sandbox.Options{KeepMessages: 1 << 20})
	server := startServer(t, settingsFor(relay.URL(), "MAILGATE_DATA_DIR="+t.TempDir()))
	var answered sync.Map // addresses that were answered 200
	var count atomic.Int64
	enough := sync.OnceFunc(func() { server.signal(t, syscall.SIGTERM) })
	var group sync.WaitGroup
	for c := range clients {
		app := newClient(t, server.URL, apiKey)
		group.Go(func() {
			for n := 0; ; n++ {
				email := fmt.Sprintf("c%d-%d@example.com", c, n)
				a, err := app.sendCode(email)
				if err != nil {
					return // refused, or cut off before it was taken
				}
				if a.Status != 200 {
					t.Errorf("%d: %+v", a.Status, a.Body)
					return
				}
				answered.Store(email, true)
				if count.Add(1) == before {
					go enough()
				}
			}
		})
	}
	group.Wait()
	if status := server.end(t); status != exitOK {
		t.Errorf("exit status %d:\n%s", status, server.log)
	}
	mails := map[string]int{}
	for _, mail := range relay.List() {
		mails[mail.To[0]]++
		if _, ok := answered.Load(mail.To[0]); !ok {
			t.Errorf("a mail went to %s, and nobody was told", mail.To[0])
		}
	}
	answered.Range(func(email, _ any) bool {
		if n := mails[email.(string)]; n != 1 {
			t.Errorf("%s was answered 200 and has %d mails", email, n)
		}
		return true
	})
	t.Logf("%d mails", len(mails))
}

// Sends that a rule holds back when SIGTERM comes leave all the same, each at its turn, for
// as long as the grace lasts.
func TestTermWhileSendsAreHeldBack(t *testing.T) {
	const held = 4
	s := startSite(t, "rules: [{name: turns, by: all, algorithm: leaky-bucket, limit: turn=1/500ms, queue: 9}]", "MAILGATE_DATA_DIR=:memory:")
	s.app.mustSend(t, "first@example.com", 200)
	var group sync.WaitGroup
	for i := range held {
		group.Go(func() {
			if a, err := s.app.sendCode(fmt.Sprintf("held%d@example.com", i)); err != nil || a.Status != 200 {
				t.Errorf("%d %+v, %v", a.Status, a.Body, err)
			}
		})
	}
	servertest.Eventually(t, "all to have a turn", func() bool {
		return metric(t, s.process, "mailgate_decision_duration_seconds_count") == strconv.Itoa(held+1)
	})
	s.process.signal(t, syscall.SIGTERM)
	group.Wait()
	if status := s.process.end(t); status != exitOK {
		t.Errorf("exit status %d:\n%s", status, s.process.log)
	}
	if n := len(s.relay.List()); n != held+1 {
		t.Errorf("%d mails, want %d", n, held+1)
	}
}

// The first SIGTERM waits for what is in flight, the second does not.
func TestSecondTermEndsAtOnce(t *testing.T) {
	relay := startFaulty(t, fault.Script{At: fault.Dot, Kind: fault.Silence})
	server := startServer(t, settingsFor(plain(relay), "MAILGATE_DATA_DIR=:memory:"))
	app := newClient(t, server.URL, apiKey)
	asked := make(chan error, 1)
	go func() {
		_, err := app.sendCode("alice@example.com")
		asked <- err
	}()
	servertest.Eventually(t, "the mail at the relay", func() bool { return len(relay.Mails()) == 1 })
	server.signal(t, syscall.SIGTERM)
	server.log.await(t, "the drain", logged("draining", "grace"))
	select {
	case <-server.exited:
		t.Fatal("it did not wait for the request in flight")
	case <-asked:
		t.Fatal("the request in flight was cut off")
	case <-time.After(200 * time.Millisecond):
	}
	server.signal(t, syscall.SIGTERM)
	if status := server.end(t); status != -1 {
		t.Errorf("exit status %d, want death by the signal", status)
	}
	if err := <-asked; err == nil {
		t.Error("the request was answered by nobody")
	}
}

// During the drain's delay /readyz says no while everything else is still served.
func TestDrainDelay(t *testing.T) {
	relay := startRelay(t, sandbox.Options{})
	server := startServer(t, settingsFor(relay.URL(), "MAILGATE_DATA_DIR=:memory:", "MAILGATE_DRAIN_DELAY=50s", "MAILGATE_SHUTDOWN_GRACE=1m"))
	app := newClient(t, server.URL, apiKey)
	if status := app.get(t, "/readyz").Status; status != 200 {
		t.Errorf("before: %d", status)
	}
	server.signal(t, syscall.SIGTERM)
	servertest.Eventually(t, "/readyz to say no", func() bool { return app.get(t, "/readyz").Status == 503 })
	app.mustSend(t, "alice@example.com", 200)
	server.signal(t, syscall.SIGTERM)
	if status := server.end(t); status != -1 {
		t.Errorf("exit status %d, want death by the signal", status)
	}
}

// The grace bounds the drain: requests that take longer are cut off, and the exit
// status says so.
func TestGraceIsBounded(t *testing.T) {
	relay := startFaulty(t, fault.Script{At: fault.Dot, Kind: fault.Silence})
	server := startServer(t, settingsFor(plain(relay), "MAILGATE_DATA_DIR=:memory:", "MAILGATE_SHUTDOWN_GRACE=300ms"))
	app := newClient(t, server.URL, apiKey)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		_, _ = app.sendCode("alice@example.com") // whatever comes of it
	}()
	servertest.Eventually(t, "the mail at the relay", func() bool { return len(relay.Mails()) == 1 })
	server.signal(t, syscall.SIGTERM)
	if status := server.end(t); status != exitFailure {
		t.Errorf("exit status %d:\n%s", status, server.log)
	}
	<-asked
}

// Where the listener fails, what is in flight is finished before the stores close.
func TestTheListenerFails(t *testing.T) {
	relay := startRelay(t, sandbox.Options{})
	s := configOf(t, settingsFor(relay.URL(), "MAILGATE_DATA_DIR=:memory:"))
	p, err := build(t.Context(), s, slog.DiscardHandler, newOutput(), nil)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := listen(s.Listen)
	if err != nil {
		t.Fatal(err)
	}
	failing := &failingListener{Listener: inner, fail: make(chan struct{})}
	served := make(chan error, 1)
	go func() { served <- p.serve(t.Context(), listeners{main: failing}, nil) }()

	conn, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const body = `{"email":"alice@example.com"}`
	fmt.Fprintf(conn, "POST /send-code HTTP/1.1\r\nHost: mailgate\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		apiKey, len(body), body[:10])
	servertest.Eventually(t, "the request to be waited for", func() bool { return failing.reads.Load() > 1 })
	close(failing.fail)
	fmt.Fprint(conn, body[10:])
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || answer.StatusCode != 200 {
		t.Errorf("the request in flight: %v %v", answer, err)
	}
	if err := <-served; err == nil || !strings.Contains(err.Error(), "serving: the network is gone") {
		t.Errorf("served until %v", err)
	}
	if n := len(relay.List()); n != 1 {
		t.Errorf("%d mails", n)
	}
}

// A failingListener has one connection, and fails when it is told to.
type failingListener struct {
	net.Listener
	accepted atomic.Bool
	reads    atomic.Int64 // of the connection, those that wait included
	fail     chan struct{}
}

func (l *failingListener) Accept() (net.Conn, error) {
	if !l.accepted.Swap(true) {
		conn, err := l.Listener.Accept()
		return &countedConn{conn, &l.reads}, err
	}
	<-l.fail
	return nil, errors.New("the network is gone")
}

type countedConn struct {
	net.Conn
	reads *atomic.Int64
}

func (c *countedConn) Read(b []byte) (int, error) {
	c.reads.Add(1)
	return c.Conn.Read(b)
}

// A restart forgets nothing, and neither does a process that was killed. Only the first start
// warns that there is no history: on another day it is another directory.
func TestRestartKeepsHistory(t *testing.T) {
	relay := startRelay(t, sandbox.Options{})
	dir := t.TempDir()
	environ := settingsFor(relay.URL(), "MAILGATE_DATA_DIR="+dir)
	for i, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM} {
		server := startServer(t, environ)
		warned := len(mentions(server.log, "the data directory was empty"))
		if where := mentions(server.log, `"msg":"serving"`); where[0]["data_dir"] != dir || warned > 0 != (i == 0) {
			t.Errorf("start %d: %v, %d warnings", i, where, warned)
		}
		app := newClient(t, server.URL, apiKey)
		for before := range i {
			app.mustSend(t, fmt.Sprintf("user%d@example.com", before), 429)
		}
		app.mustSend(t, fmt.Sprintf("user%d@example.com", i), 200)
		server.signal(t, end)
		server.end(t)
	}
}

// A second process on the same directory is told so in one line, and the first goes
// on.
func TestOneProcessADirectory(t *testing.T) {
	relay := startRelay(t, sandbox.Options{})
	dir := t.TempDir()
	environ := settingsFor(relay.URL(), "MAILGATE_DATA_DIR="+dir)
	first := startServer(t, environ)
	second := launch(t, environ, "serve")
	if status := second.end(t); status != exitMisusage {
		t.Errorf("exit status %d", status)
	}
	if got, want := second.log.String(), "mailgate: MAILGATE_DATA_DIR: "+dir+": opening the data directory: the store is unavailable: another process uses this data directory; stop it first, or give each process its own\n"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	newClient(t, first.URL, apiKey).mustSend(t, "alice@example.com", 200)
}

// Without Redis and a data directory it starts, is not ready, and refuses; with Redis back it
// serves.
func TestServe_RedisAwayAndNoDataDir_Refuses(t *testing.T) {
	relay := startRelay(t, sandbox.Options{})
	redis := redistest.Alone(t)
	redis.Kill()
	server := startServer(t, settingsFor(relay.URL(), "MAILGATE_REDIS_URL="+redis.URL(), "MAILGATE_REDIS_TIMEOUT=10s", "MAILGATE_DATA_DIR=:memory:", shared))
	app := newClient(t, server.URL, apiKey)
	if away := app.mustSend(t, "alice@example.com", 503); away.Body.Type != "urn:mailgate:problem:store-unavailable" || away.Header.Get("Retry-After") == "" {
		t.Errorf("with redis away: %+v", away.Body)
	}
	environ := settingsFor(relay.URL(), "MAILGATE_URL="+server.URL)
	if status, _, stderr := run(t, environ, "healthcheck"); status != exitFailure || !strings.Contains(stderr, "503") {
		t.Errorf("healthcheck: %d %s", status, stderr)
	}
	redis.Restart()
	servertest.Eventually(t, "readiness", func() bool {
		status, _, _ := run(t, environ, "healthcheck")
		return status == exitOK
	})
	app.mustSend(t, "alice@example.com", 200)
	if n := len(relay.List()); n != 1 {
		t.Errorf("%d mails", n)
	}
}
