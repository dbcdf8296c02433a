package local_test

import (
	"os"
	"os/exec"
	"testing"
)

// childEnv is set in a process that a test has started to run the same test on the
// directory it names: for what ends a process, or needs one of its own.
const childEnv = "MAILGATE_TEST_CHILD_DIR"

func childCommand(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}
