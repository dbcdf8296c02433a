package standby

import (
	"errors"
	"fmt"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/prober"
	"github.com/mailgate/mailgate/throttle"
)

func TestState_Next_Table(t *testing.T) {
	for _, c := range []struct {
		from          state
		away, drained bool
		want          state
	}{
		{connected, false, false, connected}, {connected, false, true, connected}, {connected, true, true, alone},
		{alone, true, true, alone}, {alone, false, false, returning}, {alone, false, true, connected},
		{returning, false, false, returning}, {returning, false, true, connected}, {returning, true, false, alone},
	} {
		if got := c.from.next(c.away, c.drained); got != c.want {
			t.Errorf("state %d, away %v, drained %v: next %d, want %d", c.from, c.away, c.drained, got, c.want)
		}
	}
}

func openJournal(t *testing.T) *journal {
	t.Helper()
	store, err := cache.Open(cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return &journal{table: store.Table("journal"), most: 8, entries: map[recordKey]*entry{}}
}

func operationOf(k kind) operation {
	return operation{kind: k, a: throttle.Admission{ID: throttle.NewID(), At: 1}, until: forever}
}

func TestJournal_Full_RefusesAdmissionsBeforeReleases(t *testing.T) {
	j, m := openJournal(t), &prober.Master{}
	last := operationOf(record)
	for range j.most - 1 {
		if err := j.put(t.Context(), m, recordKey{"mailbox", "alice"}, operationOf(record)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		o    operation
		want error
	}{
		{last, nil}, {operationOf(record), errFull}, {operationOf(value), errFull}, {operationOf(release), nil},
		{operationOf(release), errFull}, {last, nil}, // again
	} {
		if err := j.put(t.Context(), m, recordKey{"mailbox", "bob"}, c.o); !errors.Is(err, c.want) {
			t.Errorf("kind %d: %v, want %v", c.o.kind, err, c.want)
		}
	}
	err := j.forget(t.Context(), recordKey{"mailbox", "bob"}, last)
	if n := j.size(); err != nil || n != j.most {
		t.Errorf("%d operations, want %d; %v", n, j.most, err)
	}
}

func TestJournal_Load_AsItWas(t *testing.T) {
	j, m := openJournal(t), &prober.Master{}
	o := operation{kind: value, until: forever - 1, value: []byte("copy\x00")}
	a := operationOf(release)
	if err := errors.Join(j.put(t.Context(), m, recordKey{"codes", "a\x00b"}, o), j.put(t.Context(), m, recordKey{"mailbox", "alice"}, a)); err != nil {
		t.Fatal(err)
	}
	again := &journal{table: j.table, most: 8, entries: map[recordKey]*entry{}}
	if err := again.load(t.Context(), func(string) *prober.Master { return m }); err != nil {
		t.Fatal(err)
	}
	gotValue, _ := again.at(recordKey{"codes", "a\x00b"}, throttle.ID{})
	gotRelease, found := again.at(recordKey{"mailbox", "alice"}, a.a.ID)
	if again.size() != 2 || fmt.Sprint(gotValue) != fmt.Sprint(o) || !found || gotRelease.a != a.a || gotRelease.kind != release {
		t.Errorf("%d operations: %v and %v", again.size(), gotValue, gotRelease)
	}
	if err := again.forget(t.Context(), recordKey{"codes", "a\x00b"}, gotValue); err != nil {
		t.Error(err)
	}
	if value, err := again.table.Get(t.Context(), recordKey{"codes", "a\x00b"}.row(throttle.ID{})); err != nil || value != nil {
		t.Errorf("on disk is still %q, %v", value, err)
	}
}

func TestSweep_ExpiredOperations_AreDropped(t *testing.T) {
	j := openJournal(t)
	s := &Standby{o: Options{Clock: NewClock()}, journal: j, work: t.Context()}
	now := s.o.Clock.Now()
	for _, until := range []int64{now - 1, now, now + 60_000} {
		o := operationOf(record)
		o.until = until
		if err := j.put(t.Context(), &prober.Master{}, recordKey{"mailbox", "alice"}, o); err != nil {
			t.Fatal(err)
		}
	}
	if s.sweep(); j.size() != 1 {
		t.Errorf("%d operations are left, want 1", j.size())
	}
}
