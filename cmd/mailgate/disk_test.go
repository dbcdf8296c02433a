package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mailgate/mailgate/cache"
)

// A data directory that cannot be opened stops the start with one line, which names it
// and says what to do.
func TestDataDirThatWillNotDo(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil  func(t *testing.T, dir string)
		says   []string
		killed bool
	}{
		"no manifest": {func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "MANIFEST")); err != nil {
				t.Fatal(err)
			}
		}, []string{"corrupt", "nothing in it was changed", "move it away"}, false},
		"no log after a kill": {func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "00001.mem")); err != nil {
				t.Fatal(err)
			}
		}, []string{"corrupt", "not closed", "00001.mem is missing", "move it away"}, true},
		"no right to it": {func(t *testing.T, dir string) {
			lock := filepath.Join(dir, "in-use")
			if err := os.Chmod(lock, 0); err != nil {
				t.Fatal(err)
			}
			if file, err := os.OpenFile(lock, os.O_RDWR, 0); err == nil {
				file.Close()
				t.Skip("this user may do anything")
			}
		}, []string{"permission denied", "must own it"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "history")
			environ := settingsFor("smtp://127.0.0.1:1?tls=none", "MAILGATE_DATA_DIR="+dir)
			first := startServer(t, environ)
			signal := syscall.SIGTERM
			if tc.killed {
				signal = syscall.SIGKILL
			}
			first.signal(t, signal)
			if status := first.end(t); (status == exitOK) == tc.killed {
				t.Fatalf("ended with %d", status)
			}
			tc.spoil(t, dir)
			status, _, complaint := run(t, environ, "serve")
			if status != exitMisusage || strings.Count(complaint, "\n") != 1 {
				t.Errorf("status %d: %s", status, complaint)
			}
			for _, want := range append(tc.says, "MAILGATE_DATA_DIR", dir) {
				if !strings.Contains(complaint, want) {
					t.Errorf("%q is not in: %s", want, complaint)
				}
			}
		})
	}
}

// Beside Redis a directory that is damaged costs no mailbox its history, and the line does
// not say so.
func TestDamagedBesideRedis(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	environ := settingsFor("smtp://127.0.0.1:1?tls=none", "MAILGATE_DATA_DIR="+dir)
	first := startServer(t, environ)
	first.signal(t, syscall.SIGTERM)
	first.end(t)
	if err := os.Remove(filepath.Join(dir, "MANIFEST")); err != nil {
		t.Fatal(err)
	}
	status, _, complaint := run(t, append(environ, "MAILGATE_REDIS_URL=redis://127.0.0.1:1", shared), "serve")
	line := complaint[strings.LastIndex(strings.TrimSpace(complaint), "\n")+1:]
	if status != exitMisusage || !strings.Contains(line, "move it away") || !strings.Contains(line, "without redis") || strings.Contains(line, "sent emails again") {
		t.Errorf("status %d: %s", status, complaint)
	}
}

// Where files run short the line says that, and where room does it does not speak of files.
func TestWhatRunsShort(t *testing.T) {
	t.Parallel()
	few := exec.Command("sh", "-c", `ulimit -n 100; exec "$0" serve`, os.Args[0])
	few.Env = append(settingsFor("smtp://127.0.0.1:1?tls=none", "MAILGATE_DATA_DIR="+t.TempDir()), beProgram+"=1")
	out, _ := few.CombinedOutput() // its end is an error, and what it says is looked at
	if status := few.ProcessState.ExitCode(); status != exitMisusage || !strings.Contains(string(out), "; raise the limit of open files") || strings.Contains(string(out), "free some space") {
		t.Errorf("status %d: %s", status, out)
	}
	if words := remedy(fmt.Errorf("%w: 3 MB free, 36 MB needed", cache.ErrFull), false); words != "; free some space" {
		t.Errorf("without room: %q", words)
	}
	if words := remedy(fmt.Errorf("%w: %w", cache.ErrCorrupt, syscall.EMFILE), false); !strings.HasPrefix(words, "; raise the limit of open files") {
		t.Errorf("a table that cannot be opened for want of files: %q", words)
	}
}
