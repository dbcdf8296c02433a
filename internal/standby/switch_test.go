package standby

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/prober"
	"github.com/mailgate/mailgate/throttle"
	"github.com/redis/go-redis/v9"
)

func TestState_Next_Table(t *testing.T) {
	for _, c := range []struct {
		from state
		want [3]state // after lost, back and drained
	}{
		{connected, [3]state{away, connected, connected}},
		{away, [3]state{away, returning, away}},
		{returning, [3]state{away, returning, connected}},
	} {
		for e, want := range c.want {
			if got := c.from.next(event(e)); got != want {
				t.Errorf("state %d after event %d is %d, want %d", c.from, e, got, want)
			}
		}
	}
}

// reply is an error reply of Redis.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

func TestProbe_Error_Outcome(t *testing.T) {
	for _, c := range []struct {
		err  error
		want prober.Outcome
	}{
		{nil, prober.Answered},
		{reply("MOVED 1 127.0.0.1:7001"), prober.Answered},
		{reply("ERR unknown"), prober.Answered},
		{reply("LOADING Redis is loading the dataset in memory"), prober.Refused},
		{reply("READONLY You can't write against a read only replica."), prober.Refused},
		{reply("OOM command not allowed"), prober.Refused},
		{reply("CLUSTERDOWN The cluster is down"), prober.Refused},
		{reply("WRONGPASS invalid"), prober.Refused},
		{fmt.Errorf("dial: %w", syscall.ECONNREFUSED), prober.Refused},
		{fmt.Errorf("read: %w", syscall.ECONNRESET), prober.Refused},
		{io.EOF, prober.Refused},
		{fmt.Errorf("dial: %w", syscall.EMFILE), prober.Inconclusive},
		{redis.ErrPoolTimeout, prober.Inconclusive},
		{context.DeadlineExceeded, prober.Silent},
		{fmt.Errorf("redis: all sentinels specified in configuration are unreachable: %w", syscall.ECONNREFUSED), prober.Silent},
	} {
		if got := outcomeOf(c.err); got != c.want {
			t.Errorf("%v: outcome %d, want %d", c.err, got, c.want)
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
	return &journal{table: store.Table("journal"), most: 8, entries: map[string]*entry{}}
}

func operationOf(k kind) operation {
	return operation{kind: k, a: throttle.Admission{ID: throttle.NewID(), At: 1}, until: forever}
}

func TestJournal_Full_RefusesAdmissionsBeforeReleases(t *testing.T) {
	j, m := openJournal(t), &master{}
	last := operationOf(record)
	for range j.most - 1 {
		if err := j.put(t.Context(), m, "mailbox\x00alice", operationOf(record)); err != nil {
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
		if err := j.put(t.Context(), m, "mailbox\x00bob", c.o); !errors.Is(err, c.want) {
			t.Errorf("kind %d: %v, want %v", c.o.kind, err, c.want)
		}
	}
	err := j.forget(t.Context(), "mailbox\x00bob", last)
	if n := j.size(); err != nil || n != j.most {
		t.Errorf("%d operations, want %d; %v", n, j.most, err)
	}
}

func TestJournal_Load_AsItWas(t *testing.T) {
	j, m := openJournal(t), &master{}
	o := operation{kind: value, until: forever - 1, value: []byte("copy\x00")}
	a := operationOf(release)
	if err := errors.Join(j.put(t.Context(), m, "codes\x00a\x00b", o), j.put(t.Context(), m, "mailbox\x00alice", a)); err != nil {
		t.Fatal(err)
	}
	again := &journal{table: j.table, most: 8, entries: map[string]*entry{}}
	if err := again.load(t.Context(), func(string) *master { return m }); err != nil {
		t.Fatal(err)
	}
	gotValue, _ := again.at("codes\x00a\x00b", throttle.ID{})
	gotRelease, found := again.at("mailbox\x00alice", a.a.ID)
	if again.size() != 2 || fmt.Sprint(gotValue) != fmt.Sprint(o) || !found || gotRelease.a != a.a || gotRelease.kind != release {
		t.Errorf("%d operations: %v and %v", again.size(), gotValue, gotRelease)
	}
	if err := again.forget(t.Context(), "codes\x00a\x00b", gotValue); err != nil {
		t.Error(err)
	}
	if value, err := again.table.Get(t.Context(), rowOf("codes\x00a\x00b", throttle.ID{})); err != nil || value != nil {
		t.Errorf("on disk is still %q, %v", value, err)
	}
}

func TestSweep_ExpiredOperations_AreDropped(t *testing.T) {
	j := openJournal(t)
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // is not asked
	t.Cleanup(func() { _ = client.Close() })
	store, err := cache.Open(cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s, err := New(Options{Client: client, Store: store, Clock: NewClock()})
	if err != nil {
		t.Fatal(err)
	}
	s.journal = j
	now := s.o.Clock.Now()
	for _, until := range []int64{now - 1, now, now + 60_000} {
		o := operationOf(record)
		o.until = until
		if err := j.put(t.Context(), &master{}, "mailbox\x00alice", o); err != nil {
			t.Fatal(err)
		}
	}
	if s.sweep(); j.size() != 1 {
		t.Errorf("%d operations are left, want 1", j.size())
	}
}
