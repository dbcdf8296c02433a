package cache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/servertest"
)

// A directory that is taken away is found out, and so is its return.
func TestReady(t *testing.T) {
	dir := t.TempDir() + "/data"
	d := open(t, DiskOptions{Dir: dir})
	m := openMap(t, d, "one")
	ready := func() error { return errors.Join(d.Ready(t.Context()), m.Ready(t.Context())) }
	if err := ready(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	expectReady(t, d, ErrDisk)
	if err := os.Rename(dir+"-away", dir); err != nil {
		t.Fatal(err)
	}
	expectReady(t, d, nil)
	set(t, m, "key", 1)
	m.Close()
	if err := m.Ready(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed map: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Ready(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed disk: %v", err)
	}
}

// expectReady asks again, for room is looked at every few milliseconds only.
func expectReady(t *testing.T, d *Disk, want error) {
	t.Helper()
	servertest.Await(t, "the disk to be ready, or not", 10*time.Second, func() error {
		if err := d.Ready(t.Context()); !errors.Is(err, want) {
			return fmt.Errorf("it says %v, want %v", err, want)
		}
		return nil
	})
}

// Ready writes, for real, where no map can read it.
func TestReadyWrites(t *testing.T) {
	d := open(t, DiskOptions{Dir: t.TempDir()})
	has := func() bool {
		found, err := d.get([]byte(trialKey), func([]byte) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if has() {
		t.Fatal("the key is there before the first trial")
	}
	if err := d.Ready(t.Context()); err != nil || !has() {
		t.Fatalf("%v; written: %t", err, has())
	}
	if _, err := NewMap(d, "", numbers{}, roomy); err == nil {
		t.Error("a map that would see it was opened")
	}
}

// An outcome counts for a second, whichever way the clock goes; then the disk is asked
// again.
func TestTrialCountsForAWhile(t *testing.T) {
	var writes int
	var failing error
	tr := trial{write: func() error { writes++; return failing }}
	now := time.Now()
	steps := []struct {
		after  time.Duration
		fails  error
		want   error
		writes int
	}{
		{0, nil, nil, 1},
		{trialInterval - 1, errDrive, nil, 1},
		{1, errDrive, ErrDisk, 2},
		{trialInterval - 1, nil, ErrDisk, 2},
		{1, nil, nil, 3},
		{-time.Hour, errDrive, ErrDisk, 4},
	}
	for i, step := range steps {
		now, failing = now.Add(step.after), step.fails
		if err := tr.outcome(t.Context(), now); !errors.Is(err, step.want) || writes != step.writes {
			t.Errorf("step %d: %v after %d writes, want %v after %d", i, err, writes, step.want, step.writes)
		}
	}
}

// A drive that hangs keeps nobody longer than they want to wait, and holds up one
// write, not one for each who asks.
func TestTrialHangs(t *testing.T) {
	var writes atomic.Int64
	released := make(chan struct{})
	tr := trial{write: func() error {
		writes.Add(1)
		<-released
		return nil
	}}
	now := time.Now()
	for i := range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		err := tr.outcome(ctx, now.Add(time.Duration(i)*trialInterval))
		cancel()
		if !errors.Is(err, ErrDisk) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("asked %d times: %v", i+1, err)
		}
	}
	close(released)
	if err := tr.outcome(t.Context(), now); err != nil || writes.Load() != 1 {
		t.Errorf("%v after %d writes", err, writes.Load())
	}
}

// Many who ask at once make one write.
func TestTrialIsShared(t *testing.T) {
	var writes atomic.Int64
	tr := trial{write: func() error { writes.Add(1); return errDrive }}
	now, failed := time.Now(), make(chan error)
	for range 50 {
		go func() { failed <- tr.outcome(t.Context(), now) }()
	}
	for range 50 {
		if err := <-failed; !errors.Is(err, ErrDisk) {
			t.Error(err)
		}
	}
	if writes.Load() != 1 {
		t.Errorf("%d writes", writes.Load())
	}
}
