package servertest

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// childDir is set in a child, to the directory it works in.
const childDir = "SERVERTEST_CHILD_DIR"

// ChildDir is the directory that this process works in as a child, and empty in any other.
func ChildDir() string { return os.Getenv(childDir) }

// Child is a process that runs the same test once more, on a directory: for what ends a
// process, or needs one of its own.
func Child(t testing.TB, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), childDir+"="+dir)
	child.Stderr = os.Stderr
	return child
}

// KillAfter starts a child and kills it after so many lines that count. Each line is handed
// to read, which says whether it counts; one that the kill has cut off is not.
func KillAfter(t testing.TB, child *exec.Cmd, enough int, read func(line string) (counts bool)) {
	t.Helper()
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for seen := 0; ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		if !read(strings.TrimSuffix(line, "\n")) {
			continue
		}
		if seen++; seen == enough {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := child.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the child was not killed, it ended by itself: %v", err)
	}
}
