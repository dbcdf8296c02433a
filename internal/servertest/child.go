package servertest

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// childArgument is the environment variable with the argument of a child.
const childArgument = "SERVERTEST_CHILD_ARGUMENT"

// ChildArgument returns the argument of this process if it is a child, or an empty string.
func ChildArgument() string { return os.Getenv(childArgument) }

// Child returns a command that runs the same test in another process, with an argument, such as a
// directory: for tests of several processes, or of one that ends.
func Child(t testing.TB, argument string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), childArgument+"="+argument)
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
