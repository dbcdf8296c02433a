package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

func TestDataDir_InUse_SecondProcessDoesNotStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	environ := settingsFor(startRelay(t).URL(), "MAILGATE_DATA_DIR="+dir)
	first := startServer(t, environ)
	status, _, stderr := run(t, environ, "serve")
	if want := "mailgate: MAILGATE_DATA_DIR: " + dir + ": "; status != exitMisusage || strings.Count(stderr, "\n") != 1 ||
		!strings.HasPrefix(stderr, want) || !strings.HasSuffix(stderr, "another process uses this data directory; stop it first, or give each process its own\n") {
		t.Errorf("exit status %d: %s", status, stderr)
	}
	newClient(t, first.URL, apiKey).mustSend(t, "alice@example.com", 200)
}

// A damaged directory prevents the start with one line, which says what moving it away costs.
func TestDataDir_Damaged_SaysWhatToDo(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "history")
	environ := settingsFor("smtp://127.0.0.1:1?tls=none", "MAILGATE_DATA_DIR="+dir)
	startServer(t, environ).Stop(t, syscall.SIGTERM)
	if err := os.Remove(filepath.Join(dir, "history.db")); err != nil {
		t.Fatal(err)
	}
	_, _, stderr := run(t, environ, "serve")
	if !strings.HasPrefix(stderr, "mailgate: MAILGATE_DATA_DIR: "+dir+": ") || !strings.Contains(stderr, "restore a backup, or move it away") || strings.Count(stderr, "\n") != 1 {
		t.Error(stderr)
	}
}

// No other user of the machine can read the history, whatever the mode of the directory.
func TestDataDir_OpenToOthers_FilesArePrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	server := startServer(t, settingsFor(startRelay(t).URL(), "MAILGATE_DATA_DIR="+dir))
	newClient(t, server.URL, apiKey).mustSend(t, "alice@example.com", 200)
	files, err := filepath.Glob(dir + "/*")
	if err != nil || len(files) < 4 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", filepath.Base(file), info.Mode(), err)
		}
	}
}

// A process that was killed forgets nothing. One node makes a secret and keeps it, and with it the
// codes and countdowns already sent; a truncated secret prevents the start. Only the first start
// warns that there is no history: later it would be another directory.
func TestSecret_Restarted_IsKept(t *testing.T) {
	t.Parallel()
	relay, dir := startRelay(t), t.TempDir()
	environ := settingsFor(relay.URL(), "MAILGATE_DATA_DIR="+dir)
	server := startServer(t, environ)
	sent := newClient(t, server.URL, apiKey).mustSend(t, "alice@example.com", 200)
	server.Stop(t, syscall.SIGKILL)
	path := filepath.Join(dir, secretFile)
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(server.Log.String(), strings.TrimSpace(string(text))) {
		t.Errorf("the secret is in the log, or %v", err)
	}

	const empty = "the data directory was empty"
	warned := len(server.Log.Lines(empty))
	server = startServer(t, environ)
	if again := len(server.Log.Lines(empty)); warned != 1 || again != 0 {
		t.Errorf("%d and %d warnings", warned, again)
	}
	newClient(t, server.URL, apiKey).mustSend(t, "alice@example.com", 429)
	newClient(t, server.URL, "").must(t, "GET", "/countdown/"+sent.Body.Countdown, "", 200)
	newClient(t, server.URL, apiKey).mustVerify(t, "alice@example.com", sixDigits.FindString(relay.List()[0].Text), 200)
	server.Stop(t, syscall.SIGTERM)

	other := startServer(t, append(environ, "MAILGATE_SECRET=another-"+secret))
	newClient(t, other.URL, "").must(t, "GET", "/countdown/"+sent.Body.Countdown, "", 404)
	other.Stop(t, syscall.SIGTERM)
	if err := os.WriteFile(path, text[:10], 0o600); err != nil {
		t.Fatal(err)
	}
	does(t, environ, exitMisusage, "mailgate: MAILGATE_DATA_DIR: the secret in "+path+" is truncated; restore it", "serve")
}

// A program whose records are of another format forgets nothing in silence.
func TestDataDir_OtherFormat_DoesNotStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := must.Get(cache.Open(cache.Options{Dir: dir, Format: recordFormat + 1}))(t)
	must.OK(t, store.Close())
	want := fmt.Sprintf("history.db has format %d, and this program reads format %d; start the version of mailgate that made it", recordFormat+1, recordFormat)
	does(t, settingsFor("smtp://127.0.0.1:1?tls=none", "MAILGATE_DATA_DIR="+dir), exitMisusage, want, "serve")
}

// Without its data directory a node sends nothing, and says so; with it, it goes on.
func TestDataDir_Moved_SendsNothingUntilItIsBack(t *testing.T) {
	t.Parallel()
	relay, dir := startRelay(t), filepath.Join(t.TempDir(), "data")
	server := startServer(t, settingsFor(relay.URL(), "MAILGATE_DATA_DIR="+dir))
	app := newClient(t, server.URL, apiKey)
	app.mustSend(t, "alice@example.com", 200)
	must.OK(t, os.Rename(dir, dir+".old"))
	ready := func(status int) func() bool { return func() bool { return app.get(t, "/readyz").Status == status } }
	servertest.Eventually(t, "the loss to be noticed", ready(503))
	app.mustSend(t, "bob@example.com", 503)
	server.awaitLine(t, "the data directory was removed, moved or replaced: its records cannot be used", "cause")
	if !server.shows(t, "mailgate_data_dir_replaced 1") {
		t.Error("the metrics do not say so")
	}
	must.OK(t, os.Rename(dir+".old", dir))
	servertest.Eventually(t, "readiness, which may be a quarter of a second old", ready(200))
	app.mustSend(t, "alice@example.com", 429)
	app.mustSend(t, "bob@example.com", 200)
	if n := len(relay.List()); n != 2 {
		t.Errorf("%d emails", n)
	}
}

// A disk that hangs holds up a shutdown for the grace, not longer.
func TestShutdown_DiskHangs_EndsWithTheGrace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := startServer(t, settingsFor(startRelay(t).URL(), "MAILGATE_DATA_DIR="+dir, "MAILGATE_SHUTDOWN_GRACE=1s"))
	other := must.Get(sqlite.OpenConn(filepath.Join(dir, "history.db")))(t)
	defer other.Close()
	must.OK(t, sqlitex.ExecuteTransient(other, "BEGIN IMMEDIATE", nil)) // each write waits for five seconds
	metrics := newClient(t, server.URL, "")
	connections := func() (n int) {
		_, rest, _ := strings.Cut(metrics.get(t, "/metrics").Raw, "\nmailgate_http_connections ")
		_ = must.Get(fmt.Sscan(rest, &n))(t)
		return n
	}
	before, hangs := connections(), make(chan error, 1)
	go func() {
		_, err := newClient(t, server.URL, apiKey).ask("POST", "/send-code", bodyFor("alice@example.com"), nil)
		hangs <- err
	}()
	servertest.Eventually(t, "a send to hang", func() bool { return connections() > before })
	began := time.Now()
	status := server.Stop(t, syscall.SIGTERM)
	if took := time.Since(began); status != exitFailure || took > 4*time.Second {
		t.Errorf("exit status %d after %v", status, took)
	}
	server.awaitLine(t, "draining", "grace")
	if text := server.Log.String(); !strings.Contains(text, "the shutdown did not finish within 1s") {
		t.Error(text)
	}
	<-hangs
}

// Beside a healthy Redis a node sends without its data directory, but does not continue alone.
func TestRedis_OwnDataDirMoved_SendsUntilItIsAway(t *testing.T) {
	t.Parallel()
	redis, dir := redistest.Alone(t), filepath.Join(t.TempDir(), "data")
	server := startServer(t, besideRedis(t, redis, startRelay(t).URL(), "MAILGATE_DATA_DIR="+dir))
	app := newClient(t, server.URL, apiKey)
	app.mustSend(t, "alice@example.com", 200)
	must.OK(t, os.Rename(dir, dir+".old"))
	server.awaitLine(t, "the data directory was removed, moved or replaced: its records cannot be used", "cause")
	app.mustSend(t, "bob@example.com", 200)
	redis.Kill()
	app.mustSend(t, "carol@example.com", 503)
}
