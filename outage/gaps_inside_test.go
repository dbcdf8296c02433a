package outage

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/servertest"
	"github.com/mailgate/mailgate/throttle"
)

// A listening history remembers what it is told, and may be interrupted.
type listening struct {
	throttle.Recorder
	during             func() // a Record
	after              func() // a Release, if not nil
	recorded, released int
	holds              bool // what it was told last
}

func (l *listening) Record(context.Context, string, throttle.Admission) error {
	l.recorded++
	l.during()
	l.holds = true
	return nil
}

func (l *listening) Reset(ctx context.Context, key string) (int, error) {
	_, err := l.Release(ctx, key, throttle.ID{})
	return 1, err
}

func (l *listening) Release(context.Context, string, throttle.ID) (bool, error) {
	l.released++
	l.holds = false
	if l.after != nil {
		l.after()
	}
	return true, nil
}

// An unable history takes nothing.
type unable struct {
	throttle.Recorder
	asked atomic.Int64
}

func (u *unable) Record(context.Context, string, throttle.Admission) error {
	u.asked.Add(1)
	return throttle.ErrUnavailable
}

func accountWith(t *testing.T, own throttle.Recorder) *account {
	t.Helper()
	w, err := NewWatch(Options{
		Disk: cachetest.Open(t, cache.Memory), Away: unavailableIsAway, Shared: func(context.Context) error { return nil }, Now: func() int64 { return 5 },
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
	own.during = func() { a.dismiss(m) }
	a.lacks(m, counts{at: 1, until: 100})
	if !a.watch.closeGaps() || !a.whole() || own.recorded != 1 || own.released != 1 {
		t.Errorf("whole %t, recorded %d, released %d", a.whole(), own.recorded, own.released)
	}
}

// What is noted while it is given back is taken off again, too.
func TestNotedWhileGivenBack(t *testing.T) {
	for name, giveBack := range map[string]func(l *Limiter, m missing) error{
		"release": func(l *Limiter, m missing) error { _, err := l.Release(context.Background(), m.key, m.id); return err },
		"reset":   func(l *Limiter, m missing) error { _, err := l.Reset(context.Background(), m.key); return err },
	} {
		t.Run(name, func(t *testing.T) {
			own := &listening{during: func() {}}
			a := accountWith(t, own)
			own.after = func() { a.watch.closeGaps() }
			m := missing{"key", throttle.NewID()}
			a.lacks(m, counts{at: 1, until: 100})
			if err := giveBack(a.watch.Limiter("mailbox", 100, &listening{}, own), m); err != nil {
				t.Fatal(err)
			}
			if a.watch.closeGaps(); own.holds || !a.whole() {
				t.Errorf("it is on this node's record: %t, and that is whole: %t", own.holds, a.whole())
			}
		})
	}
}

// What counts no more is not missing any more, though the disk never takes anything again.
func TestMissingNoMore(t *testing.T) {
	a := accountWith(t, new(unable))
	a.lacks(missing{"old", throttle.NewID()}, counts{at: 1, until: 5})
	if !a.watch.closeGaps() {
		t.Error("what counts no more is waited for")
	}
	a.lacks(missing{"old", throttle.NewID()}, counts{at: 1, until: 5})
	a.lacks(missing{"new", throttle.NewID()}, counts{at: 1, until: 6})
	if a.watch.closeGaps() || len(a.missing) != 1 || a.whole() {
		t.Errorf("whole %t, and missing are %v", a.whole(), a.missing)
	}
}

// Whatever comes later, the own history is not trusted before all have left; and of what is
// remembered, what is not known to anybody stays.
func TestDistrustedForTheLongest(t *testing.T) {
	own := &listening{during: func() {}}
	a := accountWith(t, own)
	a.lost = 20
	a.lacks(missing{"long", throttle.NewID()}, counts{at: 1, until: 200})
	a.lacks(missing{"short", throttle.NewID()}, counts{at: 1, until: 100})
	if until := a.distrusted.Load(); until != 200 {
		t.Errorf("distrusted until %d", until)
	}
	if a.watch.closeGaps(); a.distrusted.Load() != 20 || a.whole() {
		t.Errorf("then distrusted until %d, and whole: %t", a.distrusted.Load(), a.whole())
	}
}

// What comes to be missing while the rest is noted is missing.
func TestMissingMeanwhile(t *testing.T) {
	own := &listening{}
	a := accountWith(t, own)
	own.during = sync.OnceFunc(func() { a.lacks(missing{"b", throttle.NewID()}, counts{at: 1, until: 100}) })
	a.lacks(missing{"a", throttle.NewID()}, counts{at: 1, until: 100})
	if a.watch.closeGaps() || a.whole() {
		t.Error("whole, and one is missing")
	}
	if !a.watch.closeGaps() || !a.whole() || own.recorded != 2 {
		t.Errorf("whole %t, recorded %d", a.whole(), own.recorded)
	}
}

// That the time of what is missing is over is nothing to tell, nor to note.
func TestWholeByTheTime(t *testing.T) {
	a := accountWith(t, new(unable))
	a.lacks(missing{"old", throttle.NewID()}, counts{at: 1, until: 5})
	well := a.watch.gaps
	if a.watch.gaps = unwellGaps(t); !a.watch.markGaps() {
		t.Error("it is noted")
	}
	a.watch.gaps = well
	if a.wanted(); a.healed() || !a.whole() {
		t.Errorf("healed, and whole: %t", a.whole())
	}
}

// What an earlier process has left out nobody remembers, so it stays a gap while it counts.
func TestGapsOfBefore(t *testing.T) {
	a := accountWith(t, new(unable))
	a.lacks(missing{"a", throttle.NewID()}, counts{at: 1, until: 100})
	a.watch.closeGaps()
	a.watch.Close(context.Background())
	w, err := NewWatch(a.watch.o)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(context.Background())
	b := w.account("mailbox", false, nil)
	found := w.gaps
	if w.gaps = unwellGaps(t); !w.markGaps() {
		t.Error("it is noted once more")
	}
	w.gaps = found
	if !w.closeGaps() || b.whole() || b.distrusted.Load() != 100 {
		t.Errorf("whole %t, distrusted until %d", b.whole(), b.distrusted.Load())
	}
}

// All is done when each has all, whichever comes last.
func TestGapsOfTwo(t *testing.T) {
	a := accountWith(t, new(unable))
	a.watch.account("all", false, nil)
	a.lacks(missing{"a", throttle.NewID()}, counts{at: 1, until: 100})
	for range 64 {
		if a.watch.closeGaps() {
			t.Fatal("it is done, and one is missing")
		}
	}
}

// A disk that does not take one is not asked to take all.
func TestFullDiskIsAskedOnce(t *testing.T) {
	own := new(unable)
	a := accountWith(t, own)
	for i := range 10 {
		a.lacks(missing{fmt.Sprint("key", i), throttle.NewID()}, counts{at: 1, until: 100})
	}
	if a.watch.closeGaps() || own.asked.Load() != 1 {
		t.Errorf("asked %d times", own.asked.Load())
	}
}

// More than is remembered is a gap for as long as it counts, though all else is noted.
func TestTooManyAreMissing(t *testing.T) {
	own := &listening{during: func() {}}
	a := accountWith(t, own)
	for i := range mostMissing + 1 {
		a.lacks(missing{fmt.Sprint("key", i), throttle.NewID()}, counts{at: 1, until: int64(100 + i)})
	}
	if !a.watch.closeGaps() || a.whole() || own.recorded != mostMissing || a.distrusted.Load() != 100+mostMissing {
		t.Errorf("whole %t, recorded %d, distrusted until %d", a.whole(), own.recorded, a.distrusted.Load())
	}
}

// unwellGaps are on a disk that takes nothing.
func unwellGaps(t *testing.T) *gaps {
	t.Helper()
	broken := cachetest.Open(t, cache.Memory)
	g, err := openGaps(broken)
	if err != nil {
		t.Fatal(err)
	}
	if err := broken.Close(); err != nil {
		t.Fatal(err)
	}
	return g
}

// A gap that the disk does not take is noted when it does.
func TestGapsAreMarkedLater(t *testing.T) {
	a := accountWith(t, new(unable))
	w, taking, unwell := a.watch, a.watch.gaps, unwellGaps(t)
	w.gaps = unwell
	if !a.lacks(missing{"a", throttle.NewID()}, counts{at: 1, until: 100}) || a.lacks(missing{"b", throttle.NewID()}, counts{at: 1, until: 200}) {
		t.Error("it was whole before the first, and not before the second")
	}
	if w.markGaps() {
		t.Error("a broken disk has taken it")
	}
	w.gaps = taking
	if !w.markGaps() {
		t.Error("it is not noted")
	}
	if w.gaps = unwell; !w.markGaps() {
		t.Error("it is noted twice")
	}
	w.gaps = taking
	if until, found, _, err := taking.disk.Get(context.Background(), "mailbox", ever); !found || until != 200 || err != nil {
		t.Errorf("noted is %d, %v, %v", until, found, err)
	}
}

// Somebody notes a gap while the service runs.
func TestGapsAreMarked(t *testing.T) {
	a := accountWith(t, new(unable))
	a.watch.Start()
	a.lacks(missing{"c", throttle.NewID()}, counts{at: 1, until: 300})
	servertest.Eventually(t, "the gap to be noted", func() bool {
		until, _, _, _ := a.watch.gaps.disk.Get(context.Background(), "mailbox", ever)
		return until == 300
	})
}
