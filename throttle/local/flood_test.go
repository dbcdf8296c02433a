package local_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// noon is where the clocks of these tests stand.
const noon = int64(1_800_000_000_000)

// A flood of twenty times what fits in memory: each mailbox that had its mail is
// denied the next one, and again after a restart.
func TestAFloodForgetsNobody(t *testing.T) {
	if testing.Short() {
		t.Skip("make flood has it, at its full size")
	}
	dir := t.TempDir()
	options := local.Options{
		Policy: throttle.DefaultPolicy(),
		Size:   cache.Size{Entries: floodInMemory, Bytes: 1 << 30},
		Now:    func() int64 { return noon },
	}
	disk := cachetest.Open(t, dir)
	limiter := openLimiter(t, disk, options)
	flood(t, limiter, floodMailboxes, true)
	flood(t, limiter, floodMailboxes, false)
	limiter.Close()
	if err := disk.Close(); err != nil {
		t.Fatal(err)
	}
	limiter = openLimiter(t, cachetest.Open(t, dir), options)
	flood(t, limiter, floodMailboxes/10, false)
}

// The states of meters come through a flood as well.
func TestAFloodForgetsNoState(t *testing.T) {
	if testing.Short() {
		t.Skip("make flood has it, at its full size")
	}
	const keys = floodMailboxes / 20
	dir := t.TempDir()
	options := local.MetersOptions{Size: cache.Size{Entries: keys / 20, Bytes: 1 << 30}, Now: standing}
	disk := cachetest.Open(t, dir)
	meters := openMeters(t, disk, options)
	for name, algorithm := range algorithms {
		flood(t, meters.Limiter(name, algorithm(t, 1)), keys, true)
	}
	for name, algorithm := range algorithms {
		flood(t, meters.Limiter(name, algorithm(t, 1)), keys, false)
	}
	meters.Close()
	if err := disk.Close(); err != nil {
		t.Fatal(err)
	}
	meters = openMeters(t, cachetest.Open(t, dir), options)
	for name, algorithm := range algorithms {
		flood(t, meters.Limiter(name, algorithm(t, 1)), keys/10, false)
	}
}

// flood takes once for each mailbox, from several goroutines.
func flood(t *testing.T, limiter throttle.Limiter, mailboxes int, want bool) {
	t.Helper()
	const callers = 16
	var done sync.WaitGroup
	for caller := range callers {
		done.Go(func() {
			for i := caller; i < mailboxes; i += callers {
				v, err := limiter.Take(context.Background(), fmt.Sprintf("user%d@example.com", i), throttle.NewID())
				if err != nil || v.Allowed != want {
					t.Errorf("mailbox %d: allowed %t, %v; want %t", i, v.Allowed, err, want)
					return
				}
			}
		})
	}
	done.Wait()
}
