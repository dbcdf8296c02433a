// Package cachetest opens disks for the tests of what keeps its records on one.
package cachetest

import (
	"testing"

	"github.com/mailgate/mailgate/cache"
)

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
