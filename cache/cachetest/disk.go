// Package cachetest opens disks for the tests of what keeps its records on one.
package cachetest

import (
	"testing"

	"github.com/mailgate/mailgate/cache"
)

// Small is what a test has in memory that is not about how much there is. With the race detector
// to make the default, and to clear it, takes longer than most tests do.
var Small = cache.Size{Entries: 1000, Bytes: 1 << 20}

// Open opens the disk in a directory, or cache.Memory, and closes it with the test.
func Open(t testing.TB, dir string) *cache.Disk {
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
