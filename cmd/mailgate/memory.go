package main

import (
	"io/fs"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// keepInMemory has the garbage collector keep to the memory of the container, which kills the process
// beyond it. A fifth is for what is not Go's: SQLite. GOMEMLIMIT goes first.
func keepInMemory() {
	if limit := containerMemory(os.DirFS("/")); limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit / 5 * 4)
	}
}

// containerMemory returns the smallest memory limit of the groups of this process, or 0: in bytes, of
// cgroup v2 or else v1.
func containerMemory(root fs.FS) (least int64) {
	groups, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		_, rest, _ := strings.Cut(line, ":")
		controllers, group, _ := strings.Cut(strings.TrimSpace(rest), ":")
		at, file := "sys/fs/cgroup", "memory.max"
		switch controllers {
		case "":
		case "memory":
			at, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for dir := path.Join("/", group); ; dir = path.Dir(dir) {
			text, _ := fs.ReadFile(root, path.Join(at, dir, file))
			limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			if err == nil && limit < 1<<50 && (least == 0 || limit < least) { // v1 says 1<<63 for none
				least = limit
			}
			if dir == "/" {
				break
			}
		}
	}
	return least
}
