package servertest

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// childDir is the environment variable with the directory of a child.
const childDir = "SERVERTEST_CHILD_DIR"

// ChildDir returns the directory of this process if it is a child, or an empty string.
func ChildDir() string { return os.Getenv(childDir) }

// Child returns a command that runs the same test in another process, with a directory: for
// tests that end their process or change its environment.
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

// KillAfter starts a child and kills it after so many lines that count. Read gets each complete
// line and says whether it counts.
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
		t.Fatalf("the child ended by itself: %v", err)
	}
}
