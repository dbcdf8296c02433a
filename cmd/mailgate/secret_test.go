package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

var sixDigits = regexp.MustCompile(`\b\d{6}\b`)

// One node makes a secret of its own, keeps it for itself, and with it the codes and
// countdowns that were on their way when it ended.
func TestSecretIsKept(t *testing.T) {
	relay := startRelay(t, sandbox.Options{})
	dir := t.TempDir()
	environ := settingsFor(relay.URL(), "MAILGATE_DATA_DIR="+dir)
	server := startServer(t, environ)
	sent := newClient(t, server.URL, apiKey).mustSend(t, "alice@example.com", 200)
	server.signal(t, syscall.SIGKILL)
	server.end(t)

	path := filepath.Join(dir, secretFile)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(server.log.String(), strings.TrimSpace(string(text))) {
		t.Errorf("the secret is in the log, or %v", err)
	}

	server = startServer(t, environ)
	app := newClient(t, server.URL, apiKey)
	if left := newClient(t, server.URL, "").must(t, "GET", "/countdown/"+sent.Body.Countdown, "", 200); left.Body.Limit != "minute" {
		t.Errorf("the countdown from before: %+v", left.Body)
	}
	code := sixDigits.FindString(relay.List()[0].Text)
	if a := app.must(t, "POST", "/verify-code", fmt.Sprintf(`{"email":"alice@example.com","code":%q}`, code), 200); !a.Body.Verified {
		t.Errorf("the code from before: %+v", a.Body)
	}
	server.signal(t, syscall.SIGTERM)
	server.end(t)

	// Another one ends them, and half a one is not made up for in silence.
	for _, secret := range []string{"MAILGATE_SECRET=another-" + secret, ""} {
		if secret == "" {
			if err := os.WriteFile(path, text[:10], 0o600); err != nil {
				t.Fatal(err)
			}
			cut := launch(t, environ, "serve")
			if status := cut.end(t); status != exitMisusage || !strings.Contains(cut.log.String(), "MAILGATE_DATA_DIR: the secret in "+path+" is truncated") {
				t.Errorf("status %d: %s", status, cut.log)
			}
			continue
		}
		other := startServer(t, append(environ, secret))
		newClient(t, other.URL, "").must(t, "GET", "/countdown/"+sent.Body.Countdown, "", 404)
		other.signal(t, syscall.SIGTERM)
		other.end(t)
	}
}

// A secret is in its place before the directory is written out, and one that may not outlast
// a power cut is an error.
func TestSecretOutlastsAPowerCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), secretFile)
	broken := errors.New("the drive is gone")
	for _, want := range []error{nil, broken} {
		synced := 0
		err := writeSecret(path, newSecret(), func(dir string) error {
			if _, err := readSecret(path); err != nil || dir != filepath.Dir(path) {
				t.Errorf("%s is written out, and the secret: %v", dir, err)
			}
			synced++
			return want
		})
		if synced != 1 || !errors.Is(err, want) {
			t.Errorf("written out %d times: %v", synced, err)
		}
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		t.Error(err)
	}
}

// Without a disk a secret is made for the process; with Redis one must be set.
func TestSecretIsMadeOrAskedFor(t *testing.T) {
	relay := startRelay(t, sandbox.Options{})
	server := startServer(t, settingsFor(relay.URL(), "MAILGATE_DATA_DIR=:memory:"))
	server.log.await(t, "the word", logged("made a secret that ends with this process, as nothing is kept on disk", "level"))
	status, _, stderr := run(t, settingsFor(relay.URL(), "MAILGATE_REDIS_URL=redis://127.0.0.1:1"), "serve")
	if want := "mailgate: MAILGATE_SECRET: must be set with redis_url, to the same for all processes; make one: openssl rand -hex 32\n"; status != exitMisusage || stderr != want {
		t.Errorf("status %d: %s", status, stderr)
	}
}

// Of servers that share a history the start and the metrics tell whether they share the secret.
func TestSecretDigest(t *testing.T) {
	relay, redis := startRelay(t, sandbox.Options{}), redistest.Alone(t)
	digest := func(environ ...string) string {
		server := startServer(t, settingsFor(relay.URL(), environ...))
		digest := server.log.await(t, "the start", logged("serving", "secret_digest"))
		shown := strings.Contains(server.metrics(t), fmt.Sprintf("mailgate_secret_info{digest=%q} 1\n", digest))
		if shown != (digest != "") {
			t.Errorf("the digest %q is in the metrics: %v", digest, shown)
		}
		return digest
	}
	url := "MAILGATE_REDIS_URL=" + redis.URL()
	one, same, other := digest(url, shared), digest(url, shared), digest(url, "MAILGATE_SECRET=another-"+secret)
	if len(one) != 4 || one != same || one == other {
		t.Errorf("the digests are %q and %q, and of another secret %q", one, same, other)
	}
	if alone := digest("MAILGATE_DATA_DIR=" + t.TempDir()); alone != "" {
		t.Errorf("a server that shares nothing shows %q", alone)
	}
}
