package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"testing/fstest"
)

func TestContainerMemory_Groups_SmallestLimit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"none":                     {nil, 0},
		"a container":              {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "67108864\n"}, 64 << 20},
		"no limit":                 {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 0},
		"a unit in a slice":        {map[string]string{"proc/self/cgroup": "0::/a.slice/b.service\n", "sys/fs/cgroup/a.slice/b.service/memory.max": "max\n", "sys/fs/cgroup/a.slice/memory.max": "1048576\n", "sys/fs/cgroup/memory.max": "2097152\n"}, 1 << 20},
		"version 1":                {map[string]string{"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/docker/1\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "67108864\n"}, 64 << 20},
		"version 1, no limit":      {map[string]string{"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		"a group outside of those": {map[string]string{"proc/self/cgroup": "0::/../..\n", "sys/fs/cgroup/memory.max": "1048576\n"}, 1 << 20},
	} {
		root := fstest.MapFS{}
		for path, text := range tt.files {
			root[path] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := containerMemory(root); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// A process in a group with little memory keeps to it.
func TestServe_InAGroup_KeepsToItsMemory(t *testing.T) {
	t.Parallel()
	group := groupOf(t, 256<<20)
	inGroup := []string{"sh", "-c", `echo $$ > ` + group + `/cgroup.procs && exec "$0" "$@"`}
	server := launch(t, inGroup, settingsFor(startRelay(t).URL(), inMemory), "serve").serving(t)
	if !server.shows(t, "go_gc_gomemlimit_bytes 2.14748364e+08") {
		t.Error("the memory limit is not that of the group")
	}
	if status := server.Stop(t, syscall.SIGTERM); status != exitOK {
		t.Errorf("exit status %d", status)
	}
}

// groupOf makes a control group with this memory, where that is possible.
func groupOf(t testing.TB, bytes int) string {
	t.Helper()
	for parent, file := range map[string]string{"/sys/fs/cgroup": "memory.max", "/sys/fs/cgroup/memory": "memory.limit_in_bytes"} {
		group := fmt.Sprintf("%s/mailgate-test-%d", parent, os.Getpid())
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = syscall.Rmdir(group) }) // its last process may still be ending
		if file, err := os.OpenFile(group+"/"+file, os.O_WRONLY, 0); err == nil {
			_, err = file.WriteString(strconv.Itoa(bytes))
			if err == nil && file.Close() == nil {
				return group
			}
		}
	}
	t.Skip("no control group with memory can be made here")
	return ""
}
