package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
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

// shared is the setting that processes need which share a history.
const shared = "MAILGATE_SECRET=all-" + secret

// An output is what a program writes, to be waited for while it does.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func newOutput() *output { return &output{changed: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.changed)
	o.changed = make(chan struct{})
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// await returns the first thing that find finds in the output.
func (o *output) await(t testing.TB, what string, find func(text string) (string, bool)) string {
	t.Helper()
	deadline := time.After(patience)
	for {
		o.mu.Lock()
		text, changed := o.text.String(), o.changed
		o.mu.Unlock()
		if found, ok := find(text); ok {
			return found
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("waited in vain for %s in:\n%s", what, text)
		}
	}
}

// logged finds a line of the JSON log by its message, and one of its fields.
func logged(message, field string) func(string) (string, bool) {
	return func(text string) (string, bool) {
		for text := range strings.Lines(text) {
			var line map[string]any
			if json.Unmarshal([]byte(text), &line) == nil && line["msg"] == message {
				value, _ := line[field].(string)
				return value, true
			}
		}
		return "", false
	}
}

// A process is mailgate serve as a process of its own.
type process struct {
	URL    string
	log    *output
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has
}

// settingsFor is the environment of a server on a free port, with keys. Its caches are small, as
// with the race detector it takes a second to make large ones.
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

// launch starts mailgate as a process and returns without waiting for it.
func launch(t testing.TB, environ []string, args ...string) *process {
	t.Helper()
	return launchBy(t, nil, environ, args...)
}

// launchBy is launch through another command, as one that sets a limit.
func launchBy(t testing.TB, by, environ []string, args ...string) *process {
	t.Helper()
	p := &process{log: newOutput(), exited: make(chan struct{})}
	line := slices.Concat(by, []string{os.Args[0]}, args)
	p.cmd = exec.Command(line[0], line[1:]...)
	p.cmd.Env = append(environ, beProgram+"=1", "PATH="+os.Getenv("PATH"), "TMPDIR="+os.Getenv("TMPDIR"))
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // the status is asked for where it matters
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may be gone already
		<-p.exited
		leaksNothing(t, p.log)
	})
	return p
}

// startServer is launch and wait until it serves.
func startServer(t testing.TB, environ []string) *process {
	t.Helper()
	if keepsItself(environ) {
		environ = append(slices.Clone(environ), "MAILGATE_DATA_DIR="+t.TempDir())
	}
	p := launch(t, environ, "serve")
	p.URL = "http://" + p.log.await(t, "the address", logged("serving", "address"))
	return p
}

// keepsItself reports whether a server beside Redis is to go on alone, and has not been given a
// directory for that.
func keepsItself(environ []string) bool {
	all := strings.Join(environ, "\n")
	return strings.Contains(all, "MAILGATE_REDIS_URL=") && !strings.Contains(all, "MAILGATE_DATA_DIR=") &&
		!strings.Contains(all, "MAILGATE_ON_STORE_OUTAGE=refuse") && !strings.Contains(all, "MAILGATE_REDIS_CONFIRM=")
}

func (p *process) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// end waits until the process has ended and returns its exit status, -1 for a signal.
func (p *process) end(t testing.TB) int {
	t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		t.Fatalf("the process does not end:\n%s", p.log)
		return 0
	}
}

// leaksNothing fails the test if a secret or a recipient is in what was logged.
func leaksNothing(t testing.TB, log *output) {
	t.Helper()
	for _, hidden := range []string{secret, "@example."} {
		if text := log.String(); strings.Contains(text, hidden) {
			t.Errorf("%q is in the log:\n%s", hidden, text)
		}
	}
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

// within starts a long command in this process and stops it at the end of the test.
// It returns its output and a function that stops it and returns its exit status.
func within(t testing.TB, environ []string, args ...string) (stdout, log *output, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stdout, log = newOutput(), newOutput()
	status := make(chan int, 1)
	go func() { status <- Run(ctx, args, environ, stdout, log) }()
	stop = sync.OnceValue(func() int {
		cancel()
		select {
		case s := <-status:
			return s
		case <-time.After(patience):
			t.Errorf("%q does not end", args)
			return -1
		}
	})
	t.Cleanup(func() {
		stop()
		leaksNothing(t, log)
	})
	return stdout, log, stop
}
