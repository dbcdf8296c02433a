package outage

import (
	"strings"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
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

// A books is a ledger that is opened again and again.
type books struct {
	*ledger
	t    *testing.T
	disk *cache.Disk
}

func openBooks(t *testing.T) *books {
	b := &books{t: t, disk: cachetest.Open(t, cache.Memory)}
	b.open()
	return b
}

func (b *books) open() {
	b.t.Helper()
	var err error
	if b.ledger, err = openLedger(b.disk); err != nil {
		b.t.Fatal(err)
	}
}

func (b *books) note(holder string, step step, what string) {
	b.t.Helper()
	b.done(b.owe(holder, debt{step: step, what: what}))
}

func (b *books) done(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// A ledger that is opened again has all debts, in their order, and none that was settled.
func TestLedgerIsKept(t *testing.T) {
	alice, bob := holderOf("mailbox", "alice"), holderOf("mailbox", "bob\x00")
	b := openBooks(t)
	b.note(alice, record, "2")
	b.note(alice, record, "1")
	b.note(bob, add, "1")
	b.note(bob, add, "2")
	b.note(alice, release, "2")
	stale := b.of(alice)[0]
	b.note(alice, release, "1")
	b.settled(alice, stale) // another has taken its place
	b.done(b.replace(bob, func([]debt) (debt, bool) { return debt{step: forget}, false }))
	b.done(b.replace(bob, func(all []debt) (debt, bool) { return debt{step: forget}, len(all) == 2 }))
	b.close()

	b.open()
	defer b.close()
	got := b.of(alice)
	if len(got) != 2 || got[0].what != "2" || got[1].what != "1" || got[0].step != release || got[1].step != release {
		t.Errorf("alice owes %+v", got)
	}
	if got := b.of(bob); len(got) != 1 || got[0].step != forget {
		t.Errorf("bob owes %+v", got)
	}
}

// What is owed already needs no room on the disk.
func TestOwedAlready(t *testing.T) {
	holder := holderOf("mailbox", "alice")
	b := openBooks(t)
	defer b.close()
	b.note(holder, record, "1")
	b.tighten()
	same := func(old debt, found bool) (debt, bool) { return old, found }
	if err := b.change(holder, "1", same); err != nil || b.of(holder)[0].seq != 1 {
		t.Errorf("%v, and owed is %+v", err, b.of(holder))
	}
}

// A debt that was amended is the same debt, on the disk too where that has room; and nothing
// else takes its place.
func TestAmended(t *testing.T) {
	holder := holderOf("mailbox", "alice")
	b := openBooks(t)
	b.note(holder, add, "1")
	b.note(holder, add, "2")
	was := b.of(holder)
	more := was[0]
	more.more = "more"
	b.amend(holder, more)
	b.close()
	b.open()
	defer b.close()
	if got := b.of(holder); len(got) != 2 || got[0] != more || got[1] != was[1] {
		t.Errorf("owed is %+v", got)
	}
	b.note(holder, remove, "2")
	shelf := b.tighten()
	shelf.takes(2)
	b.amend(holder, was[1]) // another has taken its place
	b.amend(holder, more)   // it says so already
	b.amend(holder, was[0])
	if got := b.of(holder); shelf.left != 1 || got[0] != was[0] || got[1].step != remove {
		t.Errorf("room for %d writes, and owed is %+v", shelf.left, got)
	}
	shelf.takes(0)
	b.amend(holder, more)
	if got := b.of(holder); got[0] != more {
		t.Errorf("without room, owed is %+v", got)
	}
	shelf.takes(enough)
	if !b.settled(holder, was[0]) {
		t.Error("it is not settled as what it was")
	}
	if b.amend(holder, more); b.owed(holder) != "2" {
		t.Errorf("afterwards %q is owed", b.owed(holder))
	}
	b.settled(holder, b.of(holder)[0])
	if got := b.bound.bytes.Load(); got != 0 {
		t.Errorf("nothing is owed, and takes %d bytes", got)
	}
}

// A ledger that is opened again goes on with the order of before, also where all is settled.
func TestLedgerGoesOn(t *testing.T) {
	holder := holderOf("mailbox", "bob")
	b := openBooks(t)
	for _, what := range []string{"1", "2", "3"} {
		b.note(holder, add, what)
	}
	b.close()
	b.open()
	defer b.close()
	for _, d := range b.of(holder) {
		b.settled(holder, d)
	}
	if b.count.Load() != 0 || len(b.holders()) != 0 {
		t.Errorf("%d debts of %q are left", b.count.Load(), b.holders())
	}
	b.note(holder, add, "4")
	if got := b.of(holder)[0].seq; got <= 3 {
		t.Errorf("the order begins anew with %d", got)
	}
}

var _ cache.Codec[debt] = debtCodec{}
