package local_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/servertest"
)

// A process is killed between Begin and Finish. Everything it had begun is in flight until
// the end of its lease, and then free; everything it had finished is answered.
func TestKilledProcess(t *testing.T) {
	if dir := servertest.ChildDir(); dir != "" {
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
	servertest.KillAfter(t, servertest.Child(t, dir), enough, func(line string) bool {
		var what string
		var number int
		_, err := fmt.Sscanf(line, "%s %d", &what, &number)
		switch {
		case err == nil && what == "begun":
			begun = number + 1
		case err == nil && what == "finished":
			finished = number + 1
		default:
			return false
		}
		return true
	})
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
		fmt.Printf("begun %d\n", n)
		if n%2 == 0 {
			continue
		}
		if kept, err := keeper.Finish(ctx, o.Lease, idempotency.Answer{Status: 200, Body: fmt.Append(nil, n)}); !kept || err != nil {
			t.Fatal(kept, err)
		}
		fmt.Printf("finished %d\n", n)
	}
}

func numbered(n int) idempotency.Name {
	return idempotency.Name{Caller: "website", Key: fmt.Sprint(n)}
}
