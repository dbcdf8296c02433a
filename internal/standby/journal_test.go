package standby

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle"
)

func openJournal(t *testing.T) *journal {
	t.Helper()
	store := must.Get(cache.Open(cache.Options{}))(t)
	t.Cleanup(func() { _ = store.Close() })
	return newJournal(store.Table("journal"), 8)
}

func recorded(until int64) operation {
	return operation{kind: record, by: textOf(throttle.DefaultPolicy()), a: throttle.Admission{ID: throttle.NewID(), At: 1}, until: until}
}

func TestJournal_Full_Refuses(t *testing.T) {
	j := openJournal(t)
	alice, last := recordKey{"mailbox", "alice"}, recorded(forever)
	for range j.most - 1 {
		must.OK(t, j.put(t.Context(), alice, recorded(forever)))
	}
	must.OK(t, j.put(t.Context(), alice, last))
	last = j.some(alice, j.most, forever)[j.most-1]
	for _, c := range []struct {
		o    operation
		want error
	}{{recorded(forever), errFull}, {last, nil}} {
		if err := j.put(t.Context(), alice, c.o); !errors.Is(err, c.want) {
			t.Errorf("%v, want %v", err, c.want)
		}
	}
	if err := j.forget(t.Context(), alice, last); err != nil || j.size() != j.most-1 {
		t.Errorf("%d operations, want %d; %v", j.size(), j.most-1, err)
	}
}

// Records are known by their oldest operations, which are in this order on the disk.
func TestJournal_All_SinceAsOnDisk(t *testing.T) {
	store := must.Get(cache.Open(cache.Options{Dir: t.TempDir(), Now: NewClock().Now}))(t)
	t.Cleanup(func() { _ = store.Close() })
	j := newJournal(store.Table("journal"), 64)
	for i := range j.most {
		must.OK(t, j.put(t.Context(), recordKey{[]string{"mailbox", "domain"}[i%2], fmt.Sprint("key", i)}, recorded(forever)))
	}
	all := j.all()
	slices.SortFunc(all, func(a, b waiting) int { return cmp.Compare(a.since, b.since) })
	must.OK(t, j.table.Each(t.Context(), func(row string, _ []byte) bool {
		if !strings.HasSuffix(row, all[0].part+"\x00"+all[0].key) {
			t.Errorf("%+v is not the record of %q", all[0], row)
		}
		all = all[1:]
		return true
	}))
}

// Decisions change a long journal while its records are listed: what is listed is then of no one moment.
func TestJournal_All_WaitedForByNoDecision(t *testing.T) {
	const many = 20_000
	j := openJournal(t)
	key := func(i int64) recordKey { return recordKey{"mailbox", fmt.Sprint(i)} }
	next := func() {
		o := operation{order: j.last.Add(1)}
		j.keep(key(o.order), o)
	}
	for range many {
		next()
	}
	var deciding sync.WaitGroup
	defer deciding.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	deciding.Go(func() {
		for i := int64(1); ctx.Err() == nil; i++ {
			next()
			_ = j.forget(ctx, key(i), operation{order: i})
		}
	})
	servertest.Eventually(t, "a decision to be made meanwhile", func() bool {
		all := j.all()
		slices.SortFunc(all, func(a, b waiting) int { return cmp.Compare(a.since, b.since) })
		return all[len(all)-1].since-all[0].since >= int64(len(all))
	})
}

func TestSweep_ExpiredOperations_AreDropped(t *testing.T) {
	const expired = 3 * atOnce
	j := openJournal(t)
	j.most = expired + 1
	s := &Standby{o: Options{Clock: NewClock()}, journal: j, locks: newLocks(), work: t.Context()}
	now := s.o.Clock.Now()
	for i := range expired + 1 {
		until := now - int64(i%2)
		if i == atOnce {
			until = now + 60_000
		}
		must.OK(t, j.put(t.Context(), recordKey{"mailbox", "alice"}, recorded(until)))
	}
	if s.sweep(); j.size() != 1 {
		t.Errorf("%d operations are left, want 1", j.size())
	}
}

// A row that no put wrote is not passed over: it may be an admission that Redis lacks.
func TestLoad_DamagedRow_Fails(t *testing.T) {
	j := openJournal(t)
	must.OK(t, j.put(t.Context(), recordKey{"mailbox", "alice"}, recorded(forever)))
	must.OK(t, j.table.Update(t.Context(), "mailbox\x00short", func([]byte, int64) ([]byte, int64) { return []byte("row"), forever }))
	if err := j.load(t.Context()); !errors.Is(err, errDamaged) {
		t.Errorf("%v", err)
	}
}
