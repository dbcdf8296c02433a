package local_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/idempotency"
)

// childEnv is set in a process that a test has started to run the same test on the
// directory it names.
const childEnv = "MAILGATE_TEST_CHILD_DIR"

// A process is killed between Begin and Finish. Everything it had begun is in flight until
// the end of its lease, and then free; everything it had finished is answered.
func TestKilledProcess(t *testing.T) {
	if dir := os.Getenv(childEnv); dir != "" {
		workUntilKilled(t, dir)
	}
	dir := t.TempDir()
	begun, finished := killAt(t, dir, 700)
	if begun < 300 || finished < 300 {
		t.Fatalf("killed when %d were begun and %d finished", begun, finished)
	}
	for _, at := range []struct {
		now  int64
		want idempotency.State
	}{{noon + 59_999, idempotency.InFlight}, {noon + 60_000, idempotency.Started}} {
		keeper, closing := reopen(t, dir, at.now)
		for n := range begun {
			o, err := keeper.Begin(context.Background(), numbered(n), body)
			switch {
			case err != nil:
				t.Fatal(err)
			case n%2 == 1 && n < finished && (o.State != idempotency.Replay || string(o.Answer.Body) != fmt.Sprint(n)):
				t.Fatalf("request %d, which was finished: %v %s", n, o.State, o.Answer.Body)
			case n%2 == 0 && o.State != at.want:
				t.Fatalf("request %d, which was only begun, at the lease's end %+d: %v", n, at.now-noon-60_000, o.State)
			}
		}
		closing()
	}
}

// killAt kills the child after so many lines, and says how many requests it had begun then,
// and up to which it had finished every other.
func killAt(t *testing.T, dir string, enough int) (begun, finished int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for seen := 0; lines.Scan(); {
		number := 0
		if !strings.HasSuffix(lines.Text(), ".") {
			continue // another line, or one that was cut off by the kill
		}
		if _, err := fmt.Sscanf(lines.Text(), "begun %d.", &number); err == nil {
			begun, seen = number+1, seen+1
		}
		if _, err := fmt.Sscanf(lines.Text(), "finished %d.", &number); err == nil {
			finished, seen = number+1, seen+1
		}
		if seen == enough {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the process was not killed, it ended by itself: %v", err)
	}
	return begun, finished
}

// workUntilKilled is the child: it begins requests, finishes every other, and prints what
// it has done.
func workUntilKilled(t *testing.T, dir string) {
	keeper, _ := reopen(t, dir, noon)
	ctx := context.Background()
	for n := 0; ; n++ {
		o, err := keeper.Begin(ctx, numbered(n), body)
		if o.State != idempotency.Started || err != nil {
			t.Fatal(o.State, err)
		}
		fmt.Printf("begun %d.\n", n)
		if n%2 == 0 {
			continue
		}
		if kept, err := keeper.Finish(ctx, o.Lease, idempotency.Answer{Status: 200, Body: fmt.Append(nil, n)}); !kept || err != nil {
			t.Fatal(kept, err)
		}
		fmt.Printf("finished %d.\n", n)
	}
}

func numbered(n int) idempotency.Name {
	return idempotency.Name{Caller: "website", Key: fmt.Sprint(n)}
}
