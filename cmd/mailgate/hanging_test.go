package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

// A request that meets a Redis which hangs has several steps to take there, and waits for
// one. Until Redis is known to be away it is refused. The timeout is long, so that a busy machine
// is not taken for a second wait.
func TestHangingRedisIsWaitedForOnce(t *testing.T) {
	t.Parallel()
	const timeout = 6 * time.Second
	relay := startRelay(t, sandbox.Options{})
	redis := redistest.Alone(t)
	server := startServer(t, settingsFor(relay.URL(), "MAILGATE_REDIS_URL="+redis.URL(), "MAILGATE_REDIS_TIMEOUT="+timeout.String(), shared))
	app := newClient(t, server.URL, apiKey)
	if a, err := app.once("before", "before@example.com"); err != nil || a.Status != 200 || a.Body.Degraded {
		t.Fatalf("with redis: %v %d %+v", err, a.Status, a.Body)
	}
	redis.Pause()
	for what, one := range map[string]struct {
		ask    func() (answer, error)
		status int
	}{
		"a send": {func() (answer, error) { return app.once("meanwhile", "alice@example.com") }, 503},
		"a guess": {func() (answer, error) {
			return app.ask("POST", "/verify-code", `{"email":"before@example.com","code":"000000"}`)
		}, 503},
	} {
		began := time.Now()
		a, err := one.ask()
		took := time.Since(began)
		if err != nil || a.Status != one.status {
			t.Errorf("%s: %v %d %+v", what, err, a.Status, a.Body)
		}
		if took < timeout*8/10 || took > timeout*18/10 {
			t.Errorf("%s took %v, want one timeout of %v and a little", what, took, timeout)
		}
	}
}

// A node that can go on alone is ready as soon as it knows that Redis hangs, also if it is by that
// question that it learns of it.
func TestReadyWhileRedisHangs(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, sandbox.Options{})
	for path, want := range map[string]string{"/readyz": `"degraded":true`, "/admin/figures": `"ready":true`} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			redis := redistest.Alone(t)
			server := startServer(t, settingsFor(relay.URL(), "MAILGATE_REDIS_URL="+redis.URL(), "MAILGATE_REDIS_TIMEOUT=1s", shared))
			newClient(t, server.URL, apiKey).mustSend(t, "bob@example.com", 200)
			redis.Pause()
			ops := newClient(t, server.URL, adminKey)
			servertest.Eventually(t, path+" to say "+want, func() bool {
				a, _ := ops.ask("GET", path, "") // figures are no answer about a mailbox
				return a.Status == 200 && strings.Contains(a.Raw, want)
			})
		})
	}
}

// Whoever asks by the command line waits for as long as a server takes to answer that has met a
// Redis which hangs.
func TestCommandsWhileRedisHangs(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, sandbox.Options{})
	for command, want := range map[string]struct {
		status int
		says   string
	}{
		"healthcheck":             {exitFailure, "503"},
		"reset alice@example.com": {exitFailure, "answers 503"},
	} {
		t.Run(strings.Fields(command)[0], func(t *testing.T) { // no address in a path, which is in the log
			t.Parallel()
			redis := redistest.Alone(t)
			environ := settingsFor(relay.URL(), "MAILGATE_REDIS_URL="+redis.URL(), "MAILGATE_REDIS_TIMEOUT=10s", shared)
			server := startServer(t, environ)
			newClient(t, server.URL, apiKey).mustSend(t, "bob@example.com", 200)
			redis.Pause()
			status, stdout, stderr := run(t, append(environ, "MAILGATE_URL="+server.URL), strings.Fields(command)...)
			if status != want.status || !strings.Contains(stderr, want.says) {
				t.Errorf("%d %s%s", status, stdout, stderr)
			}
		})
	}
}

// Redis hangs when a mail has gone and only its answer is to be kept: that is then this node's
// to know. A retry is refused until Redis is known to be away, and then gets the same answer.
func TestAnAnswerThatHangingRedisDoesNotKeep(t *testing.T) {
	t.Parallel()
	const timeout = 3 * time.Second
	relay := startFaulty(t, fault.Script{At: fault.Dot, Kind: fault.Drip})
	redis := redistest.Alone(t)
	server := startServer(t, settingsFor(plain(relay), "MAILGATE_REDIS_URL="+redis.URL(), "MAILGATE_REDIS_TIMEOUT="+timeout.String(), shared))
	app := newClient(t, server.URL, apiKey)
	sent := make(chan error, 1)
	go func() {
		a, err := app.once("key", "alice@example.com")
		if err == nil && a.Status != 200 {
			err = fmt.Errorf("%d %s", a.Status, a.Raw)
		}
		sent <- err
	}()
	servertest.Eventually(t, "the relay has the mail", func() bool { return received(relay, "\r\n.\r\n") })
	redis.Pause()
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "the first answer", func() bool {
		a, err := app.once("key", "alice@example.com")
		if err != nil || a.Status != 503 && (a.Status != 200 || a.Header.Get("Idempotent-Replayed") != "true") {
			t.Fatalf("asked again: %v %d %s", err, a.Status, a.Raw)
		}
		return a.Status == 200
	})
}
