package outage

import (
	"context"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/throttle"
)

// An outage that was met with again since somebody last looked is not over.
func TestMetWithAgain(t *testing.T) {
	w, err := NewWatch(Options{
		Disk: cachetest.Open(t, cache.Memory), Shared: func(context.Context) error { return nil }, Now: func() int64 { return 7 },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(context.Background())
	w.note(throttle.ErrUnavailable, nil)
	notes, _ := w.doubts()
	w.note(throttle.ErrUnavailable, nil)
	if w.over(notes); !w.State().Degraded {
		t.Error("it is over")
	}
	notes, _ = w.doubts()
	if w.over(notes); w.State().Degraded {
		t.Error("it is not over")
	}
}

// What is owed by a rule that is there no more is kept while it counts, as it may come back.
func TestDebtsOfARuleThatIsGone(t *testing.T) {
	w, err := NewWatch(Options{
		Disk: cachetest.Open(t, cache.Memory), Shared: func(context.Context) error { return nil }, Now: func() int64 { return 7 },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(context.Background())
	holder := holderOf("gone", "alice")
	for _, d := range []debt{{step: record, what: "old", until: 7}, {step: record, what: "new", until: 8}} {
		if err := w.ledger.owe(holder, d); err != nil {
			t.Fatal(err)
		}
	}
	if !w.settleAll() || w.owed() != 0 {
		t.Error("it is in the way")
	}
	if left := w.ledger.of(holder); len(left) != 1 || left[0].what != "new" {
		t.Errorf("left is %v", left)
	}
}
