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

// A data directory that cannot be opened stops the start with one line, which names it
// and says what to do.
func TestDataDirThatWillNotDo(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil  func(t *testing.T, dir string)
		says   []string
		killed bool
	}{
		"no database": {func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "history.db")); err != nil {
				t.Fatal(err)
			}
		}, []string{"corrupt", "nothing in it was changed", "move it away"}, false},
		"no log after a kill": {func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "history.db-wal")); err != nil {
				t.Fatal(err)
			}
		}, []string{"corrupt", "killed", "history.db-wal is missing", "move it away"}, true},
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
	if err := os.Remove(filepath.Join(dir, "history.db")); err != nil {
		t.Fatal(err)
	}
	status, _, complaint := run(t, append(environ, "MAILGATE_REDIS_URL=redis://127.0.0.1:1", shared), "serve")
	line := complaint[strings.LastIndex(strings.TrimSpace(complaint), "\n")+1:]
	if status != exitMisusage || !strings.Contains(line, "move it away") || !strings.Contains(line, "without Redis") || strings.Contains(line, "sent emails again") {
		t.Errorf("status %d: %s", status, complaint)
	}
}

// Where room runs short the line does not speak of files.
func TestRemedy_FullDiskOrFewFiles_SaysWhich(t *testing.T) {
	if words := remedy(fmt.Errorf("%w: 3 MB free", cache.ErrFull), false); words != "; free some space" {
		t.Errorf("without room: %q", words)
	}
	if words := remedy(fmt.Errorf("%w: %w", cache.ErrUnavailable, syscall.EMFILE), false); !strings.HasPrefix(words, "; raise the limit of open files") {
		t.Errorf("without files: %q", words)
	}
}
