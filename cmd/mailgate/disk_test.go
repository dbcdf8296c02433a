package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mailgate/mailgate/cache"
)

// A restart forgets nothing, and neither does a process that was killed. Only the first start
// warns that there is no history: later it would be another directory.
func TestDataDir_Restarted_KeepsTheHistory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	environ := settingsFor(startRelay(t).URL(), "MAILGATE_DATA_DIR="+dir)
	for i, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM} {
		server := startServer(t, environ)
		serving, warnings := server.log.lines(`"msg":"serving"`), server.log.lines("the data directory was empty")
		if serving[0]["data_dir"] != dir || len(warnings) > 0 != (i == 0) {
			t.Errorf("start %d: %v, %v", i, serving, warnings)
		}
		app := newClient(t, server.URL, apiKey)
		for before := range i {
			app.mustSend(t, fmt.Sprintf("user%d@example.com", before), 429)
		}
		app.mustSend(t, fmt.Sprintf("user%d@example.com", i), 200)
		server.stop(t, end)
	}
}

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
	startServer(t, environ).stop(t, syscall.SIGTERM)
	if err := os.Remove(filepath.Join(dir, "history.db")); err != nil {
		t.Fatal(err)
	}
	_, _, stderr := run(t, environ, "serve")
	if !strings.HasPrefix(stderr, "mailgate: MAILGATE_DATA_DIR: "+dir+": ") || !strings.Contains(stderr, "restore a backup, or move it away") || strings.Count(stderr, "\n") != 1 {
		t.Error(stderr)
	}
}

func TestRemedy_FullDiskOrFewFiles_SaysWhich(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"; free some space":                     fmt.Errorf("%w: 3 MB free", cache.ErrFull),
		"; raise the limit of open files":       fmt.Errorf("%w: %w", cache.ErrUnavailable, syscall.EMFILE),
		"; the user that mailgate runs as must": &os.PathError{Op: "open", Path: "/data", Err: syscall.EACCES},
	} {
		if got := remedy(err); !strings.HasPrefix(got, want) {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
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

// One node makes a secret and keeps it, and with it the codes and countdowns already sent. A
// truncated secret prevents the start.
func TestSecret_Restarted_IsKept(t *testing.T) {
	t.Parallel()
	relay, dir := startRelay(t), t.TempDir()
	environ := settingsFor(relay.URL(), "MAILGATE_DATA_DIR="+dir)
	server := startServer(t, environ)
	sent := newClient(t, server.URL, apiKey).mustSend(t, "alice@example.com", 200)
	server.stop(t, syscall.SIGKILL)
	path := filepath.Join(dir, secretFile)
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(server.log.String(), strings.TrimSpace(string(text))) {
		t.Errorf("the secret is in the log, or %v", err)
	}

	server = startServer(t, environ)
	newClient(t, server.URL, "").must(t, "GET", "/countdown/"+sent.Body.Countdown, "", 200)
	newClient(t, server.URL, apiKey).mustVerify(t, "alice@example.com", sixDigits.FindString(relay.List()[0].Text), 200)
	server.stop(t, syscall.SIGTERM)

	other := startServer(t, append(environ, "MAILGATE_SECRET=another-"+secret))
	newClient(t, other.URL, "").must(t, "GET", "/countdown/"+sent.Body.Countdown, "", 404)
	other.stop(t, syscall.SIGTERM)
	if err := os.WriteFile(path, text[:10], 0o600); err != nil {
		t.Fatal(err)
	}
	does(t, environ, exitMisusage, "mailgate: MAILGATE_DATA_DIR: the secret in "+path+" is truncated; restore it", "serve")
}
