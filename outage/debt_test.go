package outage

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/throttle"
)

// What is on disk is read back, and nothing else is taken for a debt.
func TestDebtsOnDisk(t *testing.T) {
	for _, want := range []debt{
		{step: record, what: "abcdefgh", at: 1_800_000_000_000, until: 1_800_000_086_400, seq: 1},
		{step: forget, until: -1},
		{step: finish, what: strings.Repeat("\x00", 16), more: strings.Repeat("x", 70_000), seq: 1 << 60},
	} {
		b := debtCodec{}.Append(nil, want)
		if got, err := (debtCodec{}).Parse(b); err != nil || got != want {
			t.Errorf("%+v is read back as %+v, %v", want, got, err)
		}
	}
	whole := debtCodec{}.Append(nil, debt{step: release, what: "abcdefgh", until: 5, seq: 9})
	for n := range whole {
		if got, err := (debtCodec{}).Parse(whole[:n]); err == nil {
			t.Errorf("%d of %d bytes are %+v", n, len(whole), got)
		}
	}
	for _, wrong := range [][]byte{{2, 1, 0, 0, 0, 0}, {1, 0, 0, 0, 0, 0}, {1, byte(steps), 0, 0, 0, 0}} {
		if _, err := (debtCodec{}).Parse(wrong); err == nil {
			t.Errorf("% x was taken", wrong)
		}
	}
}

// A ledger that is opened again has all debts, in their order, and none that was settled.
func TestLedgerIsKept(t *testing.T) {
	disk := cachetest.Open(t, cache.Memory)
	open := func() *ledger {
		l, err := openLedger(disk)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	alice, bob := holderOf("mailbox", "alice"), holderOf("mailbox", "bob\x00")
	l := open()
	must(l.owe(alice, debt{step: record, what: "2"}))
	must(l.owe(alice, debt{step: record, what: "1"}))
	must(l.owe(bob, debt{step: add, what: "1"}))
	must(l.owe(bob, debt{step: add, what: "2"}))
	must(l.owe(alice, debt{step: release, what: "2"}))
	stale := l.of(alice)[0]
	must(l.owe(alice, debt{step: release, what: "1"}))
	must(l.settled(alice, stale)) // another has taken its place
	must(l.replace(bob, func([]debt) bool { return false }, debt{step: forget}))
	must(l.replace(bob, func(all []debt) bool { return len(all) == 2 }, debt{step: forget}))
	l.close()

	l = open()
	defer l.close()
	got := l.of(alice)
	if len(got) != 2 || got[0].what != "2" || got[1].what != "1" || got[0].step != release || got[1].step != release {
		t.Errorf("alice owes %+v", got)
	}
	if got := l.of(bob); len(got) != 1 || got[0].step != forget {
		t.Errorf("bob owes %+v", got)
	}
	for _, holder := range l.holders() {
		for _, d := range l.of(holder) {
			must(l.settled(holder, d))
		}
	}
	if l.count.Load() != 0 || len(l.holders()) != 0 {
		t.Errorf("%d debts of %q are left", l.count.Load(), l.holders())
	}
	must(l.owe(bob, debt{step: add, what: "3"}))
	if got := l.of(bob)[0].seq; got <= 7 {
		t.Errorf("the order begins anew with %d", got)
	}
}

// An unable history takes nothing.
type unable struct{ throttle.Recorder }

func (unable) Record(context.Context, string, throttle.Admission) error {
	return throttle.ErrUnavailable
}

// A gap that the disk does not take is noted when it does.
func TestGapsAreMarkedLater(t *testing.T) {
	well, broken := cachetest.Open(t, cache.Memory), cachetest.Open(t, cache.Memory)
	now := func() int64 { return 5 }
	w, err := NewWatch(Options{Disk: well, Kept: true, Shared: func(context.Context) error { return nil }, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(context.Background())
	a := w.account("mailbox", false, nil)
	taking := w.gaps
	if w.gaps, err = openGaps(broken); err != nil {
		t.Fatal(err)
	}
	if err := broken.Close(); err != nil {
		t.Fatal(err)
	}
	var refuses throttle.Recorder = unable{}
	a.noting.Store(&refuses)
	if !a.lacks(missing{"a", throttle.NewID()}, 1, 100) || a.lacks(missing{"b", throttle.NewID()}, 1, 200) {
		t.Error("it was whole before the first, and not before the second")
	}
	if w.markGaps() {
		t.Error("a broken disk has taken it")
	}
	w.gaps = taking
	if !w.markGaps() || !w.markGaps() {
		t.Error("it is not noted")
	}
	if until, found, err := taking.disk.Get("mailbox", 5); !found || until != 200 || err != nil {
		t.Errorf("noted is %d, %v, %v", until, found, err)
	}
	w.Start()
	a.lacks(missing{"c", throttle.NewID()}, 1, 300)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if until, _, _ := taking.disk.Get("mailbox", 5); until == 300 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("nobody notes it")
		}
	}
}

var _ cache.Codec[debt] = debtCodec{}
