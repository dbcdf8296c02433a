package local_test

import (
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

func openDisk(t testing.TB, dir string) *cache.Disk {
	t.Helper()
	disk, err := cache.Open(cache.DiskOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := disk.Close(); err != nil {
			t.Error(err)
		}
	})
	return disk
}

func openLimiter(t testing.TB, disk *cache.Disk, o local.Options) *local.Limiter {
	t.Helper()
	limiter, err := local.New(disk, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(limiter.Close)
	return limiter
}

// small remembers so little that the suite goes to the disk all the time.
var small = cache.Size{Entries: 8, Bytes: 4096}

func TestConformance(t *testing.T) {
	for name, dir := range map[string]string{"memory": cache.Memory, "disk": t.TempDir()} {
		for sizeName, size := range map[string]cache.Size{"remembered": {Entries: 1000, Bytes: 1 << 20}, "forgotten": small} {
			t.Run(name+" "+sizeName, func(t *testing.T) {
				disk := openDisk(t, dir)
				throttletest.Run(t, func(t testing.TB, p throttle.Policy, now func() int64) throttle.Limiter {
					return openLimiter(t, disk, local.Options{Policy: p, Now: now, Size: size})
				}, 20_000)
			})
		}
	}
}
