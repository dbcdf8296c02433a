package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

// patience bounds every wait in these tests. Nothing takes nearly so long.
const patience = time.Minute

// beProgram in the environment makes the test binary be mailgate itself, so that tests
// can run it as a process of its own.
const beProgram = "BE_MAILGATE"

func TestMain(m *testing.M) {
	if os.Getenv(beProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// secret is part of every secret in these tests, so that finding it in any output is
// finding one that leaked.
const secret = "Hush-7f3b-9d21-c460"

const (
	apiKey   = "app-" + secret
	adminKey = "ops-" + secret
)

// inMemory is the setting for a history that ends with the process.
const inMemory = "MAILGATE_DATA_DIR=:memory:"

// leaksNothing fails the test if a secret or a recipient is in what was logged.
func leaksNothing(t testing.TB, log *servertest.Log) {
	t.Helper()
	if text := log.String(); strings.Contains(text, secret) || strings.Contains(text, "@example.") {
		t.Errorf("a secret or a recipient is in the log:\n%s", text)
	}
}

// A process is mailgate as a process of its own.
type process struct {
	*servertest.Process
	URL string
}

// settingsFor is the environment of a server on a free port, with keys. Its cache is small, as
// with the race detector it takes a second to make a large one.
func settingsFor(relayURL string, more ...string) []string {
	return append([]string{
		"MAILGATE_LISTEN=127.0.0.1:0",
		"MAILGATE_API_KEYS=app:" + apiKey,
		"MAILGATE_ADMIN_KEYS=ops:" + adminKey,
		"MAILGATE_SMTP_URL=" + relayURL,
		"MAILGATE_FROM=Acme <no-reply@acme.example>",
		"MAILGATE_CACHE_BYTES=1MiB",
	}, more...)
}

// besideRedis is the environment of one more server on a Redis, with a data directory of its
// own. A busy machine is not taken for an outage.
func besideRedis(t testing.TB, redis *redistest.Server, relayURL string, more ...string) []string {
	return settingsFor(relayURL, append([]string{
		"MAILGATE_REDIS_URL=" + redis.URL(), "MAILGATE_REDIS_TIMEOUT=10s", "MAILGATE_DATA_DIR=" + t.TempDir(), "MAILGATE_SECRET=all-" + secret,
	}, more...)...)
}

// launch starts mailgate as a process, perhaps through another command, and returns without
// waiting for it.
func launch(t testing.TB, through, environ []string, args ...string) *process {
	t.Helper()
	line := slices.Concat(through, []string{os.Args[0]}, args)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(environ, beProgram+"=1", "PATH="+os.Getenv("PATH"), "TMPDIR="+os.Getenv("TMPDIR"),
		"GORACE=atexit_sleep_ms=0") // by default a process waits for a second at its end
	p := &process{}
	t.Cleanup(func() { leaksNothing(t, p.Log) }) // after its end
	p.Process = servertest.Start(t, cmd)
	return p
}

// startServer launches a server and waits until it serves.
func startServer(t testing.TB, environ []string) *process {
	t.Helper()
	return launch(t, nil, environ, "serve").serving(t)
}

func (p *process) serving(t testing.TB) *process {
	t.Helper()
	p.URL = "http://" + p.awaitLine(t, "serving", "address")
	return p
}

// awaitLine waits for a line of the JSON log by its message, and returns one of its fields.
func (p *process) awaitLine(t testing.TB, message, field string) (value string) {
	t.Helper()
	servertest.Eventually(t, message, func() bool {
		return slices.ContainsFunc(p.Log.Lines(message), func(line map[string]any) bool {
			value, _ = line[field].(string)
			return line["msg"] == message
		})
	})
	return value
}

// run carries out one command line in this process.
func run(t testing.TB, environ []string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, complaints bytes.Buffer
	status = Run(ctx, args, environ, &out, &complaints)
	if strings.Contains(out.String()+complaints.String(), secret) {
		t.Errorf("a secret is in the output of %q: %s%s", args, &out, &complaints)
	}
	return status, out.String(), complaints.String()
}

// does fails the test unless a command line ends with this status and prints these words.
func does(t testing.TB, environ []string, status int, says string, args ...string) (stdout string) {
	t.Helper()
	got, stdout, stderr := run(t, environ, args...)
	if got != status || !strings.Contains(stdout+stderr, says) {
		t.Errorf("%q: status %d, want %d and %q:\n%s%s", args, got, status, says, stdout, stderr)
	}
	if strings.Contains(stderr, "@example") || strings.Contains(stderr, "2001:db8") {
		t.Errorf("%q: an address is in an error: %s", args, stderr)
	}
	return stdout
}

func startRelay(t testing.TB) *sandbox.Server {
	t.Helper()
	relay := must.Get(sandbox.Start(sandbox.Options{KeepMessages: 10_000}))(t)
	t.Cleanup(func() { relay.Close() })
	return relay
}
