package outage

import (
	"context"
	"fmt"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/throttle"
)

// A listening history remembers what it is told, and may be interrupted.
type listening struct {
	throttle.Recorder
	during             func()
	recorded, released int
}

func (l *listening) Record(context.Context, string, throttle.Admission) error {
	l.recorded++
	l.during()
	return nil
}

func (l *listening) Release(context.Context, string, throttle.ID) (bool, error) {
	l.released++
	return true, nil
}

func accountWith(t *testing.T, own throttle.Recorder) *account {
	t.Helper()
	w, err := NewWatch(Options{
		Disk: cachetest.Open(t, cache.Memory), Kept: true, Shared: func(context.Context) error { return nil }, Now: func() int64 { return 5 },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(context.Background()) })
	a := w.account("mailbox", false, nil)
	a.noting.Store(&own)
	return a
}

// What is given back while it is noted is taken off again.
func TestGivenBackWhileNoted(t *testing.T) {
	own := &listening{}
	a := accountWith(t, own)
	m := missing{"key", throttle.NewID()}
	own.during = func() { a.forgotten(func(other missing) bool { return other == m }) }
	a.lacks(m, 1, 100)
	if !a.watch.closeGaps() || !a.whole() || own.recorded != 1 || own.released != 1 {
		t.Errorf("whole %t, recorded %d, released %d", a.whole(), own.recorded, own.released)
	}
}

// More than is remembered is a gap for as long as it counts, though all else is noted.
func TestTooManyAreMissing(t *testing.T) {
	own := &listening{during: func() {}}
	a := accountWith(t, own)
	for i := range mostMissing + 1 {
		a.lacks(missing{fmt.Sprint("key", i), throttle.NewID()}, 1, int64(100+i))
	}
	if !a.watch.closeGaps() || a.whole() || own.recorded != mostMissing || a.distrusted.Load() != 100+mostMissing {
		t.Errorf("whole %t, recorded %d, distrusted until %d", a.whole(), own.recorded, a.distrusted.Load())
	}
}
