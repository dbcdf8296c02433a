package cache

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/sys/unix"

	"github.com/mailgate/mailgate/servertest"
)

// A directory that the process may not write, or not all of, is one that the disk fails
// on, with the reason in the error; it is not damaged, and it is left as it was.
func TestNoRightToTheDirectory(t *testing.T) {
	for name, tc := range map[string]struct {
		deny string // what may not be written: a file, or "." for the directory
		mode fs.FileMode
	}{
		"the directory": {".", 0o555},
		"the lock":      {lockFile, 0o400},
		"the manifest":  {badger.ManifestFilename, 0},
		"a table":       {"*.sst", 0},
		"the registry":  {badger.KeyRegistryFileName, 0o400},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := fillDisk(t, dir, 20).Close(); err != nil {
				t.Fatal(err)
			}
			denied := dir
			for _, path := range files(t, dir, "*") {
				if hit, _ := filepath.Match(tc.deny, filepath.Base(path)); hit {
					denied = path
				}
				allow(t, path, 0o666)
			}
			beside := filepath.Join(dir, "secret") // of the program: nothing of ours
			if err := os.WriteFile(beside, nil, 0); err != nil {
				t.Fatal(err)
			}
			allow(t, filepath.Dir(dir), 0o755)
			allow(t, dir, 0o777)
			allow(t, denied, tc.mode)
			before := listing(t, dir)
			var err error
			asNobody(t, func() { _, err = Open(DiskOptions{Dir: dir}) })
			if !errors.Is(err, ErrDisk) || errors.Is(err, ErrCorrupt) || !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%v, want %v and %v", err, ErrDisk, fs.ErrPermission)
			}
			if after := listing(t, dir); after != before {
				t.Errorf("the directory has changed:\n%s\n%s", before, after)
			}
			allow(t, dir, 0o777)
			allow(t, denied, 0o777)
			asNobody(t, func() { readAll(t, open(t, DiskOptions{Dir: dir}), 20) })
		})
	}
}

func allow(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// asNobody runs f as a user who has no more rights than anybody.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	const nobody = 65534
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Setfsuid(nobody); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setfsuid(0); err != nil {
			t.Fatal(err)
		}
	}()
	f()
}

// A file system goes read-only when its drive fails.
func TestReadOnlyMount(t *testing.T) {
	servertest.OnDisk(t, "", func(disk string) {
		if err := fillDisk(t, disk, 20).Close(); err != nil {
			t.Fatal(err)
		}
		servertest.ReadOnly(t, disk, true)
		for _, dir := range []string{disk, filepath.Join(disk, "new")} {
			if _, err := Open(DiskOptions{Dir: dir}); !errors.Is(err, ErrDisk) || !errors.Is(err, syscall.EROFS) {
				t.Errorf("%v, want %v and %v", err, ErrDisk, syscall.EROFS)
			}
		}
		servertest.ReadOnly(t, disk, false)
		readAll(t, open(t, DiskOptions{Dir: disk}), 20)
	})
}
