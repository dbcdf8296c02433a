package standby

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/prober"
	"github.com/mailgate/mailgate/throttle"
)

// snapshot is a home that copies a node's directory when it is asked for the second time.
type snapshot struct {
	from, to string
	asked    int
}

func (s *snapshot) Do(context.Context, string, throttle.Op) (throttle.Reply, error) {
	if s.asked++; s.asked == 2 {
		return throttle.Reply{Done: true}, os.CopyFS(s.to, os.DirFS(s.from))
	}
	return throttle.Reply{Done: true}, nil
}

// A node that is killed while it syncs a counter sends again what was on its way, and nothing that Redis has confirmed before.
func TestSettle_KilledMeanwhile_CounterSentAgainOnce(t *testing.T) {
	on := func(dir string) *journal {
		store := must.Get(cache.Open(cache.Options{Dir: dir, Now: NewClock().Now}))(t)
		t.Cleanup(func() { _ = store.Close() })
		return newJournal(store.Table("journal"), 2*atOnce)
	}
	redis := &snapshot{from: t.TempDir(), to: filepath.Join(t.TempDir(), "killed")}
	window := must.Get(throttle.NewFixedWindow(throttle.Tier{Name: "day", Limit: 3, Window: 24 * time.Hour}))(t)
	s := &Standby{o: Options{Clock: NewClock()}, journal: on(redis.from), locks: newLocks(), work: t.Context()}
	h := &home{part: &part{Standby: s, name: "window"}, shared: throttle.New(window, redis)}
	h.part.apply = h.apply
	k := recordKey{h.name, "alice"}
	for range 2 * atOnce {
		o := recorded(forever)
		o.by = textOf(window)
		must.OK(t, s.journal.put(t.Context(), k, o))
	}
	for s.journal.has(k) {
		must.OK(t, h.settle(t.Context(), new(prober.Master), k.key))
	}
	killed := on(redis.to)
	must.OK(t, killed.load(t.Context()))
	if killed.size() != atOnce {
		t.Errorf("%d are sent again, want %d", killed.size(), atOnce)
	}
}
