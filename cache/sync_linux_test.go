package cache

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// What Sync is for: a write that is acknowledged is on the drive. The kernel tells how
// much of a mapped file is yet to be written there.
func TestSyncReachesTheDrive(t *testing.T) {
	for _, sync := range []bool{true, false} {
		dir := t.TempDir()
		if onMemory(t, dir) {
			t.Skip("the directory for temporary files is on no drive")
		}
		d := open(t, DiskOptions{Dir: dir, Sync: sync})
		if err := d.put(diskKey(1), make([]byte, 1000), 1000); err != nil {
			t.Fatal(err)
		}
		if dirty := dirtyPages(t, dir) > 0; dirty == sync {
			t.Errorf("with Sync=%v something is yet to be written: %v", sync, dirty)
		}
	}
}

// onMemory says whether a directory is on a file system that lives in memory, where
// nothing is ever written out.
func onMemory(t *testing.T, dir string) bool {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	best, kind := "", ""
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if at := fields[1]; strings.HasPrefix(dir+"/", strings.TrimSuffix(at, "/")+"/") && len(at) >= len(best) {
			best, kind = at, fields[2]
		}
	}
	return kind == "tmpfs" || kind == "ramfs"
}

// dirtyPages are the kilobytes of the logs' mappings that are yet to be written.
func dirtyPages(t *testing.T, dir string) (kilobytes int) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	ours, seen := false, false
	for line := range strings.Lines(string(maps)) {
		if !strings.Contains(strings.Fields(line)[0], ":") || strings.Contains(line, "/") {
			ours = strings.Contains(line, dir+"/") && strings.Contains(line, logSuffix)
			seen = seen || ours
			continue
		}
		var n int
		if _, err := fmt.Sscanf(line, "Shared_Dirty: %d", &n); err == nil && ours {
			kilobytes += n
		}
		if _, err := fmt.Sscanf(line, "Private_Dirty: %d", &n); err == nil && ours {
			kilobytes += n
		}
	}
	if !seen {
		t.Fatal("no log is mapped")
	}
	return kilobytes
}
