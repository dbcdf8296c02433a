package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

// While one has the key, the clock goes on for who waits. Whoever gives up meanwhile is let
// go, and finds the key as it was.
func TestUpdatesInTurn(t *testing.T) {
	m := openMap(t, open(t, DiskOptions{Dir: Memory}), "turn")
	var clock atomic.Int64
	inside, leave, first := make(chan bool), make(chan bool), make(chan error, 1)
	go func() {
		first <- m.Update(context.Background(), "key", at(0), func(int, bool, int64) Edit[int] {
			close(inside)
			<-leave
			return Put(1, 30_000)
		})
	}()
	<-inside

	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if err := m.Update(gone, "key", clock.Load, noEdit(t)); !errors.Is(err, context.Canceled) || !errors.Is(err, ErrUnchanged) {
		t.Errorf("update: %v", err)
	}
	if _, _, _, err := m.Get(gone, "key", clock.Load); !errors.Is(err, context.Canceled) {
		t.Errorf("get: %v", err)
	}

	shown := make(chan string, 2)
	go func() {
		_, found, now, err := m.Get(context.Background(), "key", clock.Load)
		shown <- fmt.Sprint(found, now, err)
	}()
	go func() {
		err := m.Update(context.Background(), "key", clock.Load, func(_ int, found bool, now int64) Edit[int] {
			shown <- fmt.Sprint(found, now, nil)
			return Keep[int]()
		})
		if err != nil {
			shown <- err.Error()
		}
	}()
	clock.Store(30_000)
	close(leave)
	for range 2 {
		if got, want := <-shown, fmt.Sprint(false, 30_000, nil); got != want {
			t.Errorf("shown %s, want %s", got, want)
		}
	}
	if err := <-first; err != nil {
		t.Error(err)
	}
	expect(t, m, "key", 1)
}

// Who has gone while the disk was read decides nothing.
func TestGoneWhileTheDiskIsRead(t *testing.T) {
	f, m := openFaulty(t)
	set(t, m, "key", 1)
	m.hot.Clear()
	ctx, cancel := context.WithCancel(context.Background())
	f.damage = func(value []byte) []byte { cancel(); return value }
	err := m.Update(ctx, "key", func() int64 { return 0 }, noEdit(t))
	if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrUnchanged) {
		t.Error(err)
	}
}

func noEdit(t *testing.T) func(int, bool, int64) Edit[int] {
	return func(int, bool, int64) Edit[int] {
		t.Error("the edit ran for nobody")
		return Put(2, never)
	}
}

// An Update that fails before it writes says so, and one that began to write never does.
func TestUnchanged(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(f *faulty, m *Map[int])
		key   string
		kind  error
		proof bool
	}{
		"no room": {func(f *faulty, _ *Map[int]) {
			f.room.free = func() (space, error) { return space{}, nil }
			f.room.checked.Store(0)
		}, "key", ErrFull, true},
		"too long":        {func(*faulty, *Map[int]) {}, strings.Repeat("k", maxKey), ErrTooLong, true},
		"a read fails":    {func(f *faulty, m *Map[int]) { f.getErr = errDrive; m.hot.Clear() }, "key", ErrDisk, true},
		"a write fails":   {func(f *faulty, _ *Map[int]) { f.putErr, f.deleteErr = errDrive, errDrive }, "key", ErrDisk, false},
		"the map closed":  {func(_ *faulty, m *Map[int]) { m.Close() }, "key", ErrClosed, true},
		"the disk closed": {func(f *faulty, _ *Map[int]) { _ = f.Close() }, "key", ErrClosed, true},
	} {
		for kind, edit := range map[string]Edit[int]{"put": Put(2, never), "remove": Remove[int]()} {
			if tc.kind == ErrTooLong && edit.kind == remove {
				continue // Badger looks at the key itself
			}
			t.Run(name+", "+kind, func(t *testing.T) {
				f, m := openFaulty(t)
				set(t, m, "key", 1)
				free := f.room.free
				defer func() { f.room.free = free }()
				tc.spoil(f, m)
				err := m.Update(context.Background(), tc.key, at(0), func(int, bool, int64) Edit[int] { return edit })
				if !errors.Is(err, tc.kind) || errors.Is(err, ErrUnchanged) != tc.proof || strings.Contains(err.Error(), ErrUnchanged.Error()) {
					t.Errorf("%v, proof %t; want %v, %t", err, errors.Is(err, ErrUnchanged), tc.kind, tc.proof)
				}
			})
		}
	}
}
