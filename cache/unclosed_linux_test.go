package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"github.com/mailgate/mailgate/servertest"
)

// A process that is killed leaves its newest log, in which is what no table has yet. If
// that log is gone, so is the history in it: Open must not go on as if there was none.
func TestLogsMissingAfterAKill(t *testing.T) {
	const keys = 20
	crashed, closed := killedAndClosed(t, keys)
	for name, tc := range map[string]struct {
		from  string
		spoil func(t *testing.T, dir string)
		says  string // nothing: all keys are there
	}{
		"nothing":                 {crashed, func(*testing.T, string) {}, ""},
		"the log":                 {crashed, func(t *testing.T, dir string) { remove1(t, dir, "*.mem") }, "00001.mem is missing"},
		"the log of values":       {crashed, func(t *testing.T, dir string) { remove1(t, dir, "*.vlog") }, ""},
		"the keys' registry":      {crashed, func(t *testing.T, dir string) { remove1(t, dir, badger.KeyRegistryFileName) }, ""},
		"all but the lock":        {crashed, removeAllButLock, "00001.mem is missing"},
		"an older log is no help": {crashed, func(t *testing.T, dir string) { renameLog(t, dir, "00000.mem") }, "00001.mem is missing"},
		"a newer log is":          {crashed, func(t *testing.T, dir string) { renameLog(t, dir, "00007.mem") }, ""},
		"no log when closed":      {closed, func(*testing.T, string) {}, ""},
		"and nobody wrote it down": {crashed, func(t *testing.T, dir string) {
			damage(t, dir, lockFile, cutTo(0)) // as before it was written down
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := snapshot(t, tc.from)
			tc.spoil(t, dir)
			before := listing(t, dir)
			d, err := Open(DiskOptions{Dir: dir})
			if tc.says != "" {
				if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), tc.says) {
					t.Fatalf("%v, want %v that says %q", err, ErrCorrupt, tc.says)
				}
				if after := listing(t, dir); after != before {
					t.Errorf("the directory has changed:\n%s\n%s", before, after)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			readAll(t, d, keys)
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func removeAllButLock(t *testing.T, dir string) {
	for _, path := range files(t, dir, "*") {
		if filepath.Base(path) != lockFile {
			remove1(t, dir, filepath.Base(path))
		}
	}
}

func renameLog(t *testing.T, dir, to string) {
	t.Helper()
	if err := os.Rename(files(t, dir, "*"+logSuffix)[0], filepath.Join(dir, to)); err != nil {
		t.Fatal(err)
	}
}

// Logs come and go while tables are written, and at each opening. Whatever a process that
// is killed leaves of them is opened.
func TestKilledAfterLogsChanged(t *testing.T) {
	const keys = 20
	dir := t.TempDir()
	d := fillDisk(t, dir, keys)
	for i := range 2 * memTableSize / maxValue {
		if err := d.put(diskKey(keys+i), make([]byte, maxValue), 1<<40); err != nil {
			t.Fatal(err)
		}
	}
	killed := kill(t, dir)
	if log := files(t, killed, "*"+logSuffix)[0]; filepath.Base(log) == logName(1) {
		t.Fatalf("the first log never became full: %s", log)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if log := written(t, dir); log != 0 {
		t.Errorf("closed, and log %d is still asked for", log)
	}
	for range 2 {
		readAll(t, open(t, DiskOptions{Dir: killed}), keys)
		if killed = kill(t, killed); written(t, killed) == 0 {
			t.Error("open, and no log is asked for")
		}
	}
}

// While the directory is open another log becomes the newest. It is missed as well, though an
// older one is still there.
func TestTheNewestLogIsMissing(t *testing.T) {
	dir := t.TempDir()
	d := fillDisk(t, dir, 20)
	for i := range 2 * memTableSize / maxValue {
		if err := d.put(diskKey(20+i), make([]byte, maxValue), 1<<40); err != nil {
			t.Fatal(err)
		}
	}
	d.watch.look()
	killed := kill(t, dir)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	newest := filepath.Base(files(t, killed, "*"+logSuffix)[0])
	renameLog(t, killed, logName(1))
	before := listing(t, killed)
	if _, err := Open(DiskOptions{Dir: killed}); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), newest+" is missing") {
		t.Errorf("%v, want %v that says %s is missing", err, ErrCorrupt, newest)
	}
	if after := listing(t, killed); after != before {
		t.Errorf("the directory has changed:\n%s\n%s", before, after)
	}
}

// kill is a snapshot once what can be written out has been.
func kill(t *testing.T, dir string) string {
	t.Helper()
	servertest.Eventually(t, "each full log to be written out", func() bool { return len(files(t, dir, "*"+logSuffix)) == 1 })
	return snapshot(t, dir)
}

// written is what the file of the lock says.
func written(t *testing.T, dir string) int {
	t.Helper()
	said, err := os.ReadFile(filepath.Join(dir, lockFile))
	if err != nil {
		t.Fatal(err)
	}
	return lastLog(string(said))
}

// A process may be killed while it opens or closes the directory, and Badger makes a table
// before the manifest lists it. What is in that is in a log or in other tables as well.
func TestKilledWhileItOpensOrCloses(t *testing.T) {
	const keys = 20
	dir := t.TempDir()
	if err := fillDisk(t, dir, keys).Close(); err != nil {
		t.Fatal(err)
	}
	moments := &snapshots{t: t, dir: dir}
	d, err := Open(DiskOptions{Dir: dir, Log: slog.New(moments)})
	if err != nil {
		t.Fatal(err)
	}
	opening := len(moments.taken)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if opening == 0 || len(moments.taken) == opening {
		t.Fatalf("%d moments while it opens, %d in all", opening, len(moments.taken))
	}
	for i, killed := range moments.taken {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			plantTable(t, killed)
			readAll(t, open(t, DiskOptions{Dir: killed}), keys)
		})
	}
}

// snapshots are of a directory at each moment that Badger tells of.
type snapshots struct {
	slog.Handler
	t     *testing.T
	dir   string
	taken []string
}

func (s *snapshots) Enabled(context.Context, slog.Level) bool { return true }

func (s *snapshots) Handle(context.Context, slog.Record) error {
	s.taken = append(s.taken, snapshot(s.t, s.dir))
	return nil
}

// plantTable makes a table that the manifest does not list.
func plantTable(t *testing.T, dir string) {
	t.Helper()
	copyFile(t, files(t, dir, "*"+tableSuffix)[0], filepath.Join(dir, "000077"+tableSuffix))
}

// A table that Badger could not finish stays, and another takes its place. When the
// directory is closed none is left that could be taken for one the manifest has lost.
func TestClosedWithoutUnlistedTables(t *testing.T) {
	const keys = 20
	dir := t.TempDir()
	d := writeTables(t, dir, keys)
	plantTable(t, dir)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if left := files(t, dir, "*"+tableSuffix); len(left) != 1 {
		t.Errorf("left are %q", left)
	}
	readAll(t, open(t, DiskOptions{Dir: dir}), keys)
}

// What is not closed to the end does not say that it is.
func TestNotClosed(t *testing.T) {
	dir := t.TempDir()
	d := writeTables(t, dir, 20)
	remove1(t, dir, badger.ManifestFilename)
	if err := d.Close(); !errors.Is(err, ErrDisk) {
		t.Errorf("closed without a manifest: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, lockFile)); err != nil || string(text) == saysClosed {
		t.Errorf("it says %q, %v", text, err)
	}
}
