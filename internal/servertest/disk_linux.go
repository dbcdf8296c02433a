package servertest

import (
	"os"
	"syscall"
	"testing"
)

// OnDisk runs a part of a test in a child, in a directory that is a tmpfs with these options. It
// is mounted in the mount namespace of the child.
func OnDisk(t *testing.T, options string, run func(dir string)) {
	t.Helper()
	if dir := ChildArgument(); dir != "" {
		mount(t, "", "/", syscall.MS_REC|syscall.MS_PRIVATE, "")
		mount(t, "tmpfs", dir, 0, options)
		run(dir)
		return
	}
	child := Child(t, t.TempDir())
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		child.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		child.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		child.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := child.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// ReadOnly makes the file system of OnDisk read-only, or writable again.
func ReadOnly(t testing.TB, dir string, is bool) {
	t.Helper()
	flags := uintptr(syscall.MS_REMOUNT)
	if is {
		flags |= syscall.MS_RDONLY
	}
	mount(t, "tmpfs", dir, flags, "")
}

func mount(t testing.TB, kind, dir string, flags uintptr, options string) {
	t.Helper()
	if err := syscall.Mount(kind, dir, kind, flags, options); err != nil {
		t.Fatalf("mounting %s: %v", dir, err)
	}
}
