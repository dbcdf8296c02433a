package main

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

// With an address for operations the figures are there alone and the health checks there too, and
// nothing else is.
func TestOpsListen_Set_HasMetricsAlone(t *testing.T) {
	relay := startRelay(t, sandbox.Options{})
	environ := settingsFor(relay.URL(), "MAILGATE_DATA_DIR=:memory:", "MAILGATE_OPS_LISTEN=127.0.0.1:0")
	server := startServer(t, environ)
	address := server.log.await(t, "the address", logged("serving", "ops_address"))
	main, ops := newClient(t, server.URL, apiKey), newClient(t, "http://"+address, apiKey)
	main.mustSend(t, "alice@example.com", 200)
	for path, want := range map[string]struct{ main, ops int }{
		"/metrics": {404, 200}, "/livez": {200, 200}, "/readyz": {200, 200},
		"/docs": {200, 404}, "/admin": {200, 404}, "/mailboxes/alice@example.com": {200, 404}, "/nothing": {404, 404},
	} {
		if at, there := main.get(t, path).Status, ops.get(t, path).Status; at != want.main || there != want.ops {
			t.Errorf("%s: %d and at the address for operations %d; want %d and %d", path, at, there, want.main, want.ops)
		}
	}
	ops.mustSend(t, "bob@example.com", 404)
	if text := ops.get(t, "/metrics").Raw; !strings.Contains(text, `mailgate_sends_total{limit="",outcome="sent",rule=""} 1`+"\n") {
		t.Error("the send is not counted")
	}
	at := []string{"MAILGATE_LISTEN=127.0.0.1:1", "MAILGATE_OPS_LISTEN=" + address}
	if status, _, stderr := run(t, at, "healthcheck"); status != exitOK {
		t.Errorf("healthcheck: %s", stderr)
	}
	if status, _, stderr := run(t, append(at, "MAILGATE_URL=http://127.0.0.1:1"), "healthcheck"); status != exitFailure {
		t.Errorf("healthcheck elsewhere: %d %s", status, stderr)
	}
	server.signal(t, syscall.SIGTERM)
	if status := server.end(t); status != exitOK {
		t.Errorf("exit status %d:\n%s", status, server.log)
	}
}

// The figures and the health checks are answered while requests without a key use up their share, and
// while the server drains.
func TestOpsListen_FloodAndDrain_Answers(t *testing.T) {
	relay := startFaulty(t, fault.Script{At: fault.Dot, Kind: fault.Silence})
	server := startServer(t, settingsFor(plain(relay), "MAILGATE_DATA_DIR=:memory:", "MAILGATE_OPS_LISTEN=127.0.0.1:0", "MAILGATE_SHUTDOWN_GRACE=3s"))
	ops := newClient(t, "http://"+server.log.await(t, "the address", logged("serving", "ops_address")), "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	refused, ended := floodWithoutKey(ctx, newClient(t, server.URL, ""))
	servertest.Eventually(t, "the flood to be refused", func() bool { return refused.Load() > 100 })
	for range 50 {
		for _, path := range []string{"/livez", "/readyz", "/metrics"} {
			if a := ops.get(t, path); a.Status != 200 {
				t.Fatalf("%s beside a flood: %d", path, a.Status)
			}
		}
	}
	cancel()
	ended.Wait()

	app := newClient(t, server.URL, apiKey)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = app.sendCode("alice@example.com") // cut off in the end
	}()
	servertest.Eventually(t, "the send to be under way", func() bool { return relay.Open() > 0 })
	server.signal(t, syscall.SIGTERM)
	servertest.Eventually(t, "503", func() bool { return ops.get(t, "/readyz").Status == 503 })
	if a := ops.get(t, "/metrics"); a.Status != 200 {
		t.Errorf("/metrics of a server that drains: %d", a.Status)
	}
	server.end(t)
	<-done
}

// floodWithoutKey asks for a page over many connections until ctx ends, and counts what is refused as
// busy.
func floodWithoutKey(ctx context.Context, c client) (refused *atomic.Int64, ended *sync.WaitGroup) {
	refused, ended = new(atomic.Int64), new(sync.WaitGroup)
	for range 100 {
		ended.Go(func() {
			for ctx.Err() == nil {
				if a, err := c.fetch(nil, "GET", "/docs", ""); err == nil && a.Status == 503 {
					refused.Add(1)
				}
			}
		})
	}
	return refused, ended
}

// Two listeners need two addresses, and one that is taken is one line.
func TestOpsListen_Taken_StopsTheStart(t *testing.T) {
	relay := startRelay(t, sandbox.Options{})
	server := startServer(t, settingsFor(relay.URL(), "MAILGATE_DATA_DIR=:memory:"))
	taken := strings.TrimPrefix(server.URL, "http://")
	for _, tt := range []struct{ listen, ops, want string }{
		{"127.0.0.1:0", taken, "MAILGATE_OPS_LISTEN: cannot listen on " + taken},
		{taken, taken, "MAILGATE_OPS_LISTEN: must be another address than listen"},
		{"127.0.0.1:0", "nowhere", "MAILGATE_OPS_LISTEN: must be host:port"},
	} {
		environ := settingsFor(relay.URL(), "MAILGATE_DATA_DIR=:memory:", "MAILGATE_OPS_LISTEN="+tt.ops)
		environ[0] = "MAILGATE_LISTEN=" + tt.listen
		status, _, stderr := run(t, environ, "serve")
		if status != exitMisusage || !strings.Contains(stderr, tt.want) {
			t.Errorf("%+v: %d %s", tt, status, stderr)
		}
	}
}
