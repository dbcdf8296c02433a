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
