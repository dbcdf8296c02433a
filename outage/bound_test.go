package outage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

// What nobody needs any more is forgotten while the shared history is away, in memory and on
// the disk, by a node that knows its clock.
func TestOldIsForgottenInAnOutage(t *testing.T) {
	n := openPayer(t)
	n.alone("alice")
	n.clock.Add(n.longest - 1)
	n.alone("bob")
	n.clock.Add(1)
	if n.watch.sweep(); n.watch.State().Debts != 2 {
		t.Errorf("before the clock is known %d steps are owed", n.watch.State().Debts)
	}
	n.watch.heard()
	n.await("the old one to be forgotten", func() bool { return n.watch.State().Debts == 1 })
	if n.watch.sweep(); n.watch.ledger.number(holderOf("mailbox", "bob")) != 1 {
		t.Error("one that counts was forgotten")
	}
	n.stop()
	n.start()
	if s := n.watch.State(); s.Debts != 1 || !s.Degraded {
		t.Errorf("after a restart: %+v", s)
	}
}

// However many of a page are old, none is left, and no other is lost.
func TestManyAreOld(t *testing.T) {
	const many = 2*oldAtOnce + 1
	holder := holderOf("all", "all")
	b := openBooks(t)
	defer b.close()
	for i := range many {
		b.done(b.owe(holder, debt{step: record, what: fmt.Sprint(i), until: int64(5 + i%many/(many-1))}))
	}
	if some := b.page(holder).old(5); len(some) != oldAtOnce {
		t.Errorf("%d at once hold back whoever asks about a page", len(some))
	}
	b.expire(b.page(holder), 5)
	if left := b.of(holder); len(left) != 1 || left[0].until != 6 {
		t.Errorf("%d are left", len(left))
	}
}

// What is one too many is refused and told once, until there is room again; and what ends
// something is taken for longer than what begins it.
func TestTooMuchIsOwed(t *testing.T) {
	b, told := openBooks(t), 0
	defer b.close()
	b.bound.most = 10_000
	b.bound.tell = func() { told++ }
	most := func(step step) (noted int) {
		for i := range 1000 {
			if err := b.owe(holderOf("mailbox", fmt.Sprint(step, i)), debt{step: step, what: "1"}); err != nil {
				if !errors.Is(err, errTooMuch) {
					t.Fatal(err)
				}
				return i
			}
		}
		return -1
	}
	admitted := most(record)
	if more := most(add) + most(begin); admitted < 10 || admitted > 10_000/holderBytes || more != 0 || told != 1 {
		t.Errorf("%d sends and then %d codes and requests were noted, and that it is too much was told %d times", admitted, more, told)
	}
	first := holderOf("mailbox", fmt.Sprint(record, 0))
	b.note(first, release, "1")
	if more := most(forget); more < 1 || more > admitted/8+1 {
		t.Errorf("%d steps that end something were noted", more)
	}
	for i := range admitted {
		holder := holderOf("mailbox", fmt.Sprint(record, i))
		b.settled(holder, b.of(holder)[0])
	}
	if most(add) < 10 || told != 2 {
		t.Errorf("with room again it was told %d times", told)
	}
}

// What is counted is what is there.
func TestNothingIsOwed(t *testing.T) {
	holder := holderOf("mailbox", "alice")
	b := openBooks(t)
	b.note(holder, record, "1")
	b.note(holder, release, "1")
	b.note(holder, record, "2")
	b.done(b.owe(holder, debt{step: finish, what: "2", more: "more"}))
	want := ofHolder(holder) + ofDebt(debt{what: "1"}) + ofDebt(debt{what: "2", more: "more"})
	for range 2 {
		if got := b.bound.bytes.Load(); got != want || b.count.Load() != 2 {
			t.Errorf("%d steps take %d bytes, want %d", b.count.Load(), got, want)
		}
		b.close()
		b.open()
	}
	defer b.close()
	b.done(b.replace(holder, func([]debt) (debt, bool) { return debt{step: forget}, true }))
	b.settled(holder, b.of(holder)[0])
	if got := b.bound.bytes.Load(); got != 0 || b.count.Load() != 0 {
		t.Errorf("nothing takes %d bytes", got)
	}
}

// A send that would be one too many is not admitted, and leaves nothing behind; one line says
// so, and who asks whether the node is ready is told.
func TestRefusesWhatIsTooMuch(t *testing.T) {
	ctx, n := context.Background(), openPayer(t)
	well := func(context.Context) error { return nil }
	n.watch.ledger.bound.most = ofHolder("mailbox alice") + debtBytes // and what ends something is taken
	if v, err := n.Take(ctx, "carol", throttle.NewID()); err != nil || !v.Allowed || v.Degraded {
		t.Fatalf("%+v, %v", v, err)
	}
	n.alone("alice")
	if err := n.watch.Ready(ctx, well); err != nil {
		t.Error(err)
	}
	for range 2 {
		if _, err := n.Take(ctx, "bob", throttle.NewID()); !errors.Is(err, throttle.ErrUnavailable) || !errors.Is(err, errTooMuch) {
			t.Errorf("%v", err)
		}
	}
	if sends, err := n.own.History(ctx, "bob"); err != nil || len(sends) != 0 {
		t.Errorf("on this node's record is %v, %v", sends, err)
	}
	for _, key := range []string{"alice", "carol"} {
		if v, err := n.Take(ctx, key, throttle.NewID()); err != nil || v.Allowed || !v.Degraded {
			t.Errorf("%s, who has to wait, is told %+v, %v", key, v, err)
		}
	}
	if s := n.watch.State(); s.Debts != 1 {
		t.Errorf("%d steps are owed", s.Debts)
	}
	if err := n.watch.Ready(ctx, well); !errors.Is(err, errTooMuch) {
		t.Errorf("whether it is ready: %v", err)
	}
	n.there.leave(false)
	n.await("the end of the outage", func() bool { s := n.watch.State(); return !s.Degraded && s.Debts == 0 })
	n.alone("bob")
	if err := n.watch.Ready(ctx, well); err != nil {
		t.Error(err)
	}
	if n.stop(); strings.Count(n.log.String(), "it admits no more until") != 1 {
		t.Errorf("the log has %s", n.log.String())
	}
}
