//go:build unix

package filelock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mailgate/mailgate/internal/filelock"
	"github.com/mailgate/mailgate/internal/must"
	"golang.org/x/sys/unix"
)

// A process that is being started has every open file of this one for a moment. It must not keep the lock.
func TestRelease_FileIsStillOpenElsewhere_LockIsFree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	file := must.Get(os.Create(path))(t)
	take := func(file *os.File, want bool) {
		if free := must.Get(filelock.Take(file))(t); free != want {
			t.Errorf("free is %v", free)
		}
	}
	take(file, true)
	elsewhere := must.Get(unix.Dup(int(file.Fd())))(t)
	defer unix.Close(elsewhere)
	other := must.Get(os.Open(path))(t)
	take(other, false)
	must.OK(t, filelock.Release(file))
	take(other, true)
	must.OK(t, filelock.Release(other))
}
