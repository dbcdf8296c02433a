package outage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/throttle"
)

// unavailableIsAway takes every fault for an outage.
func unavailableIsAway(err error) bool {
	return errors.Is(err, throttle.ErrUnavailable) || errors.Is(err, idempotency.ErrUnavailable)
}

// An outage that was met with again since somebody last looked is not over.
func TestMetWithAgain(t *testing.T) {
	w, err := NewWatch(Options{
		Disk: cachetest.Open(t, cache.Memory), Away: unavailableIsAway, Shared: func(context.Context) error { return nil }, Now: func() int64 { return 7 },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(context.Background())
	w.note(throttle.ErrUnavailable, nil)
	notes, _ := w.doubts()
	w.note(throttle.ErrUnavailable, nil)
	if w.over(notes, 0); !w.State().Degraded {
		t.Error("it is over")
	}
	notes, _ = w.doubts()
	if w.over(notes, 0); w.State().Degraded {
		t.Error("it is not over")
	}
}

// Who asks whether the node is ready and does not wait for the answer has met with no outage.
func TestWhoAsksGivesUp(t *testing.T) {
	w, err := NewWatch(Options{
		Disk: cachetest.Open(t, cache.Memory), Now: func() int64 { return 7 }, Away: unavailableIsAway, Shared: func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("%w: %w", throttle.ErrUnavailable, ctx.Err())
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(context.Background())
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	own := func(context.Context) error { return nil }
	if err := w.Ready(ctx, own); !errors.Is(err, throttle.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ready: %v", err)
	}
	if w.State().Degraded {
		t.Error("an outage")
	}
}

// An outage is not over while something is owed, unless that has to wait for somebody else.
func TestNotOverWhileOwed(t *testing.T) {
	a := accountWith(t, &listening{})
	a.watch.note(throttle.ErrUnavailable, nil)
	if err := a.owe("alice", debt{step: record, what: "1", until: 100}); err != nil {
		t.Fatal(err)
	}
	if a.watch.over(1, 0); !a.watch.State().Degraded {
		t.Error("it is over")
	}
	if a.watch.over(1, 1); a.watch.State().Degraded {
		t.Error("it is not over")
	}
}

// What is owed by a rule that is no more is told once and in nobody's way. It is kept while
// it counts, and no longer.
func TestDebtsOfARuleThatIsGone(t *testing.T) {
	n := openPayer(t)
	n.owes("gone", "old", n.clock.Load()+1)
	n.owes("gone", "new", n.clock.Load()+2)
	n.stop()
	n.start()
	if s := n.watch.State(); s.Debts != 0 || s.Degraded {
		t.Errorf("it is in the way: %+v", s)
	}
	n.clock.Add(1)
	n.await("the old one to be dropped", func() bool { return n.watch.ledger.count.Load() == 1 })
	if left := n.watch.ledger.of(holderOf("gone", "alice")); len(left) != 1 || left[0].what != "new" {
		t.Errorf("left is %v", left)
	}
	n.watch.Close(context.Background())
	if log := n.log.String(); strings.Count(log, "rules that are no more") != 1 || !strings.Contains(log, "debts=2") || strings.Contains(log, "not all") {
		t.Errorf("the log has %s", log)
	}
}

// A rule that is back pays what it owes, at once.
func TestDebtsOfARuleThatIsBack(t *testing.T) {
	n := openPayer(t)
	n.owes("back", throttle.NewID().String(), n.clock.Load()+1)
	n.stop()
	n.o.Pause = 100 * time.Millisecond // and the next look by the time is far
	n.start()
	n.await("the shared history to be met", n.watch.met.Load)
	n.watch.Limiter("back", 1, n.there, n.own)
	n.await("it to be paid", func() bool { return n.watch.State().Written == 1 && n.watch.ledger.count.Load() == 0 })
}

// owes has this node owe an admission of alice's by a rule that it does not have.
func (n *payer) owes(rule, what string, until int64) {
	n.t.Helper()
	if err := n.watch.ledger.owe(holderOf(rule, "alice"), debt{step: record, what: what, until: until}); err != nil {
		n.t.Fatal(err)
	}
}
