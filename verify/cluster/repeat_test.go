package cluster

import (
	"context"
	"math"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/verify"
)

// at is a book in a Redis of its own, by a clock that the test sets.
func at(t *testing.T, now *int64) *Book {
	t.Helper()
	store, err := redisstore.Open(redisstore.Options{
		URL: redistest.Alone(t).URL(), Timeout: 20 * time.Second, Clock: func() int64 { return *now },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return New(store)
}

// A step that is repeated after others have come in between takes nothing from what they
// have done, for as long as its receipt is kept.
func TestRepeatedAfterOthers(t *testing.T) {
	t.Parallel()
	now := int64(1_800_000_000_000)
	book := at(t, &now)
	ctx := context.Background()
	old, fresh := verify.Hash{1}, verify.Hash{2}
	for name, s := range map[string]struct {
		script *redisstore.Script
		what   string
	}{"check": {checkScript, string(old[:])}, "forget": {forgetScript, strconv.Itoa(math.MaxInt64)}} {
		step := newStep()
		repeat := func() byte {
			letter, err := book.step(ctx, name, name, s.script, s.what, step)
			if err != nil {
				t.Fatal(err)
			}
			return letter
		}
		add := func(h verify.Hash) {
			if err := book.Add(ctx, name, h, verify.DefaultLifetime); err != nil {
				t.Fatal(err)
			}
		}
		add(old)
		first := repeat()
		add(fresh)
		add(old)
		now += 59_999
		if again := repeat(); first != done || again != done {
			t.Errorf("%s: %c, and repeated %c", name, first, again)
		}
		if result, err := book.Check(ctx, name, fresh); result != verify.Correct || err != nil {
			t.Errorf("%s: a code that was added in between is %v, %v", name, result, err)
		}
	}
}

// A code that comes to be recorded when it has expired is not.
func TestRecordedTooLate(t *testing.T) {
	t.Parallel()
	now := int64(1_800_000_000_000)
	book := at(t, &now)
	hash := verify.Hash{1}
	for expires, want := range map[int64]byte{now: none, now + 1: done} {
		if letter, err := book.step(context.Background(), "record", "late", recordScript, string(hash[:]), strconv.FormatInt(expires, 10)); letter != want || err != nil {
			t.Errorf("%d ms before its end: %c, %v", expires-now, letter, err)
		}
	}
}

// A step that is repeated, since its answer was lost, waits for the replicas as the first
// would have.
func TestRepeatedIsConfirmed(t *testing.T) {
	t.Parallel()
	master := redistest.Alone(t)
	host, port, _ := net.SplitHostPort(master.Addr)
	replica := redistest.Alone(t, "replicaof "+host+" "+port)
	store, err := redisstore.Open(redisstore.Options{URL: master.URL(), Confirm: 1, Timeout: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	book, hash, ctx := New(store), verify.Hash{1}, context.Background()
	insist := func(doing string, do func() error) {
		t.Helper()
		err := verify.ErrUnavailable
		for range 100 { // until the replica is there
			if err = do(); err == nil {
				return
			}
		}
		t.Fatalf("%s: %v", doing, err)
	}
	expires := strconv.FormatInt(time.Now().UnixMilli()+verify.DefaultLifetime, 10)
	for name, s := range map[string]struct {
		script     *redisstore.Script
		what, with string
	}{
		"check":  {checkScript, string(hash[:]), newStep()},
		"forget": {forgetScript, expires, newStep()},
		"record": {recordScript, string(hash[:]), expires},
	} {
		step := func() error {
			letter, err := book.step(ctx, name, name, s.script, s.what, s.with)
			if err == nil && letter != done {
				t.Errorf("%s: %c", name, letter)
			}
			return err
		}
		insist("add", func() error { return book.Add(ctx, name, hash, verify.DefaultLifetime) })
		insist(name, step)
		replica.Pause()
		if step() == nil {
			t.Errorf("%s, repeated without a replica: done", name)
		}
		replica.Resume()
		// Some servers' WAIT is for what all have written, so that it does not tell.
		key := master.Client().Keys(ctx, "*"+name).Val()[0]
		master.Client().Persist(ctx, key)
		insist(name, step)
		if master.Client().PTTL(ctx, key).Val() < 0 {
			t.Errorf("%s, repeated, writes nothing", name)
		}
	}
}
