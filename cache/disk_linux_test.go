package cache

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
)

func TestUpdate_FullDisk_SaysFullAndGoesOnWithRoom(t *testing.T) {
	t.Parallel()
	servertest.OnDisk(t, "size=6m", func(mount string) {
		dir := filepath.Join(mount, "history")
		var log bytes.Buffer
		s := open(t, Options{Dir: dir, Log: logTo(&log)})
		table := s.Table("t")
		put(t, table, "kept", "value", never)
		servertest.Fill(t, filepath.Join(mount, "neighbor"))
		var acknowledged []string
		var err error
		for i := 0; err == nil && i < 100_000; i++ {
			key := fmt.Sprint("key", i)
			if err = tryPut(table, key, strings.Repeat("v", 1000), never); err == nil {
				acknowledged = append(acknowledged, key)
			}
		}
		if !errors.Is(err, ErrFull) || !errors.Is(s.Ready(ctx), ErrFull) {
			t.Fatalf("after %d writes: %v, ready: %v", len(acknowledged), err, s.Ready(ctx))
		}
		batched, wait := Batch(ctx)
		if err := appendTo(batched, table, "batched", strings.Repeat("v", 5000)); err != nil || !errors.Is(wait(ctx), ErrFull) {
			t.Errorf("a batch: %v", err)
		}
		expectNone(t, table, "batched")
		s.records.(*disk).hot.Clear()
		expect(t, table, "kept", "value")
		must.OK(t, os.Remove(filepath.Join(mount, "neighbor")))
		must.OK(t, s.Ready(ctx))
		put(t, table, "later", "value", never)
		if n := strings.Count(log.String(), "takes no writes"); n != 1 {
			t.Errorf("logged %d times: %s", n, &log)
		}
		must.OK(t, s.Close())
		table = open(t, Options{Dir: dir}).Table("t")
		for _, key := range append(acknowledged, "kept", "later") {
			if value, err := table.Get(ctx, key); err != nil || value == nil {
				t.Errorf("%s is lost, %v", key, err)
			}
		}
	})
}

// A small disk is not filled by the log of a few records that change often.
func TestUpdate_SmallDisk_GoesOn(t *testing.T) {
	t.Parallel()
	servertest.OnDisk(t, "size=8m", func(mount string) {
		table := open(t, Options{Dir: filepath.Join(mount, "history")}).Table("t")
		for i := range 4000 {
			if err := tryPut(table, fmt.Sprint("key", i%300), fmt.Sprint(i, strings.Repeat("v", 1000)), never); err != nil {
				t.Fatalf("write %d: %v", i, err)
			}
		}
	})
}

func TestOpen_FullOrReadOnlyDisk_SaysSo(t *testing.T) {
	t.Parallel()
	servertest.OnDisk(t, "size=2m", func(mount string) {
		neighbor := filepath.Join(mount, "neighbor")
		servertest.Fill(t, neighbor)
		if _, err := Open(Options{Dir: filepath.Join(mount, "history")}); !errors.Is(err, ErrFull) {
			t.Errorf("full: %v", err)
		}
		must.OK(t, os.Remove(neighbor))
		servertest.ReadOnly(t, mount, true)
		if _, err := Open(Options{Dir: filepath.Join(mount, "history")}); !errors.Is(err, syscall.EROFS) {
			t.Errorf("read-only: %v", err)
		}
	})
}

// A power cut is a file system that is shut down without writing out what was not flushed.
func TestOpen_AfterPowerCut_IsSoundAndSyncLosesNothing(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("mounting a file system to shut down needs root")
	}
	for _, sync := range []bool{false, true} {
		t.Run(fmt.Sprint("sync ", sync), func(t *testing.T) {
			image, mount := filepath.Join(t.TempDir(), "image"), t.TempDir()
			if out, err := exec.Command("mkfs.ext4", "-q", "-F", image, "64m").CombinedOutput(); err != nil {
				t.Skipf("no file system to shut down: %v %s", err, out)
			}
			remount(t, image, mount)
			lost, kept := 0, 0
			for range 3 {
				acknowledged := writeUntilPowerCut(t, mount, sync)
				remount(t, image, mount)
				s := must.Get(Open(Options{Dir: filepath.Join(mount, "history"), Sync: sync}))(t)
				for _, key := range acknowledged {
					value, err := s.Table("t").Get(ctx, key)
					switch {
					case err != nil || value != nil && string(value) != "of "+key:
						t.Fatalf("%s is %q, %v", key, value, err)
					case value == nil:
						lost++
					default:
						kept++
					}
				}
				must.OK(t, s.Close())
			}
			t.Logf("%d kept, %d lost", kept, lost)
			if sync && lost > 0 {
				t.Errorf("%d acknowledged writes of %d are lost", lost, lost+kept)
			}
			if !sync && lost == 0 {
				t.Error("nothing was lost, so nothing was cut")
			}
		})
	}
}

// remount mounts the image, in place of what is mounted from it.
func remount(t *testing.T, image, at string) {
	t.Helper()
	// As long as a process that was started meanwhile has a copy of the mount, so that it is the one
	// that was shut down, the probe fails.
	for shut := true; shut; {
		for syscall.Unmount(at, 0) == syscall.EBUSY {
			time.Sleep(10 * time.Millisecond)
		}
		if out, err := exec.Command("mount", "-o", "loop", image, at).CombinedOutput(); err != nil {
			t.Skipf("no file system to shut down: %v %s", err, out)
		}
		if shut = errors.Is(os.WriteFile(filepath.Join(at, "probe"), nil, 0o600), syscall.EIO); shut {
			time.Sleep(50 * time.Millisecond)
		}
	}
	t.Cleanup(func() { _ = syscall.Unmount(at, syscall.MNT_DETACH) })
}

// writeUntilPowerCut returns the keys that were acknowledged before the power was cut.
func writeUntilPowerCut(t *testing.T, mount string, sync_ bool) (keys []string) {
	s := must.Get(Open(Options{Dir: filepath.Join(mount, "history"), Sync: sync_}))(t)
	table, began := s.Table("t"), time.Now().UnixNano()
	var mu sync.Mutex
	var group sync.WaitGroup
	cut := false
	for w := range 8 {
		group.Go(func() {
			for i := 0; ; i++ {
				key := fmt.Sprint(began, "-", w, "-", i)
				err := tryPut(table, key, "of "+key, never)
				mu.Lock()
				if err == nil && !cut {
					keys = append(keys, key)
				}
				if len(keys) >= 600 && !cut {
					cut = true
					cutPower(t, mount)
				}
				done := cut || err != nil
				mu.Unlock()
				if done {
					return
				}
			}
		})
	}
	group.Wait()
	_ = s.Close() // on a file system that takes nothing more
	return keys
}

// cutPower shuts the file system down and forgets what is not on the drive.
func cutPower(t *testing.T, mount string) {
	const shutdown, withoutFlush = 0x8004587d, 2
	dir, err := os.Open(mount)
	if err != nil {
		t.Error(err)
		return
	}
	defer dir.Close()
	flags := uint32(withoutFlush)
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, dir.Fd(), shutdown, uintptr(unsafe.Pointer(&flags))); errno != 0 {
		t.Error(errno)
	}
}

// A directory that may be read but not written is named in the words of the system.
func TestOpen_DirectoryNotWritable_SaysSo(t *testing.T) {
	t.Parallel()
	dir, _ := filled(t, 1)
	must.OK(t, os.Chmod(dir, 0o500))
	become := func() error { return nil }
	if os.Getuid() == 0 { // who may write everywhere
		const nobody = 65534
		must.OK(t, os.Chmod(filepath.Dir(dir), 0o755))
		for _, path := range []string{dir, filepath.Join(dir, lockName), filepath.Join(dir, databaseName)} {
			must.OK(t, os.Chown(path, nobody, nobody))
		}
		become = func() error {
			runtime.LockOSThread() // which ends with its goroutine
			return syscall.Setfsuid(nobody)
		}
	}
	opened := make(chan error)
	go func() {
		err := become()
		if err == nil {
			_, err = Open(Options{Dir: dir})
		}
		opened <- err
	}()
	if err := <-opened; !errors.Is(err, fs.ErrPermission) || !contains(err, databaseName+logSuffix) {
		t.Error(err)
	}
}

// A state that cannot be read is not taken for that of a new directory.
func TestOpen_StateUnreadable_Refuses(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, os.Symlink("/proc/self/mem", filepath.Join(dir, "in-use"))) // nothing is at its beginning
	_, err := Open(Options{Dir: dir})
	if failed, ok := errors.AsType[*fs.PathError](err); !ok || failed.Op != "read" {
		t.Errorf("%v, want the error of reading", err)
	}
}
