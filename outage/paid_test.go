package outage

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// A tight shelf takes so many writes, and then none until there is room again.
type tight struct {
	shelf
	mu   sync.Mutex
	left int
}

func (s *tight) Update(ctx context.Context, place string, clock func() int64, edit func(debt, bool, int64) cache.Edit[debt]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 {
		return cache.ErrFull
	}
	s.left--
	return s.shelf.Update(ctx, place, clock, edit)
}

func (s *tight) takes(writes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = writes
}

const enough = 1 << 30

// tighten has a ledger's disk take no more writes, until it is told how many.
func (l *ledger) tighten() *tight {
	s := &tight{shelf: l.disk}
	l.disk = s
	return s
}

// owed are the subjects of a holder's debts.
func (b *books) owed(holder string) (all string) {
	for _, d := range b.of(holder) {
		all += d.what
	}
	return all
}

// What is paid is not owed, though the disk does not forget it; and as soon as it does, it is
// forgotten there.
func TestPaidOnAFullDisk(t *testing.T) {
	holder := holderOf(".codes", "alice")
	b := openBooks(t)
	b.note(holder, add, "1")
	b.note(holder, add, "2")
	disk := b.tighten()
	for _, d := range b.of(holder) {
		b.settled(holder, d)
	}
	if b.owed(holder) != "" || b.count.Load() != 0 || b.clear() || b.paid.number() != 2 {
		t.Errorf("%q is owed, %d in all, and %d are to be forgotten", b.owed(holder), b.count.Load(), b.paid.number())
	}
	disk.takes(enough)
	if !b.clear() || b.paid.number() != 0 {
		t.Errorf("%d are still to be forgotten", b.paid.number())
	}
	b.close()
	b.open()
	defer b.close()
	if b.owed(holder) != "" {
		t.Errorf("after a restart %q is owed", b.owed(holder))
	}
}

// What was paid first is forgotten first, whenever there is room: nobody finds a step without
// those that came after it.
func TestPaidIsForgottenInOrder(t *testing.T) {
	holder := holderOf(".codes", "alice")
	for writes, want := range []string{"123", "23", "3", ""} {
		b := openBooks(t)
		for _, what := range []string{"1", "2", "3"} {
			b.note(holder, add, what)
		}
		disk := b.tighten()
		for i, d := range b.of(holder) {
			if i == 1 {
				disk.takes(writes)
			}
			b.settled(holder, d)
		}
		b.clear()
		b.close()
		b.open()
		if b.owed(holder) != want {
			t.Errorf("after %d writes the disk has %q, want %q", writes, b.owed(holder), want)
		}
		b.close()
	}
}

// What is owed anew where something paid was is not forgotten with it.
func TestOwedWherePaid(t *testing.T) {
	holder := holderOf("mailbox", "alice")
	b := openBooks(t)
	b.note(holder, record, "1")
	disk := b.tighten()
	b.settled(holder, b.of(holder)[0])
	disk.takes(enough)
	b.note(holder, release, "1")
	if !b.clear() {
		t.Error("something is still to be forgotten")
	}
	b.close()
	b.open()
	defer b.close()
	if got := b.of(holder); len(got) != 1 || got[0].step != release {
		t.Errorf("owed is %+v", got)
	}
}

// Whoever pays what the disk does not forget has the worker look after that.
func TestPaidIsLookedAfter(t *testing.T) {
	a := accountWith(t, &listening{})
	pay := func(context.Context, string, debt) error { return nil }
	a.pay.Store(&pay)
	if err := a.owe("alice", debt{step: record, what: "1", until: 100}); err != nil {
		t.Fatal(err)
	}
	<-a.watch.wake
	a.watch.ledger.tighten()
	if err := a.settle(context.Background(), "alice"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-a.watch.wake:
	default:
		t.Error("nobody looks after it")
	}
}

// A there is a shared history that can be left.
type there struct {
	*local.Limiter
	during func() // happens while a Record is on its way, if not nil
	mu     sync.Mutex
	away   bool
}

func (s *there) leave(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

func (s *there) ready(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return throttle.ErrUnavailable
	}
	return nil
}

func (s *there) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	if err := s.ready(ctx); err != nil {
		return throttle.Verdict{}, err
	}
	return s.Limiter.Take(ctx, key, id)
}

func (s *there) Record(ctx context.Context, key string, a throttle.Admission) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	if s.during != nil {
		s.during()
	}
	return s.Limiter.Record(context.WithoutCancel(ctx), key, a)
}

// A payer is a node that is started again and again.
type payer struct {
	*Historian
	t     *testing.T
	o     Options
	clock atomic.Int64
	log   bytes.Buffer // to be read when the watch is closed
	there *there
	own   *local.Limiter
}

func openPayer(t *testing.T) *payer {
	t.Helper()
	n := &payer{t: t}
	n.clock.Store(1_800_000_000_000)
	n.there = &there{Limiter: n.limiter(cachetest.Open(t, cache.Memory))}
	n.o = Options{
		Disk: cachetest.Open(t, cache.Memory), Away: unavailableIsAway, Shared: n.there.ready, Now: n.clock.Load, Pause: time.Millisecond,
		Log: slog.New(slog.NewTextHandler(&n.log, nil)),
	}
	n.own = n.limiter(n.o.Disk)
	n.start()
	return n
}

func (n *payer) limiter(disk *cache.Disk) *local.Limiter {
	n.t.Helper()
	l, err := local.New(disk, local.Options{Policy: throttle.DefaultPolicy(), Size: cachetest.Small, Now: n.clock.Load})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(l.Close)
	return l
}

func (n *payer) start() {
	n.t.Helper()
	w, err := NewWatch(n.o)
	if err != nil {
		n.t.Fatal(err)
	}
	n.Historian = w.Historian("mailbox", throttle.DefaultPolicy().Longest(), n.there, n.own)
	w.Start()
	n.t.Cleanup(n.stop)
}

// stop ends the watch at once, whatever it has to do.
func (n *payer) stop() {
	ctx, end := context.WithCancel(context.Background())
	end()
	n.watch.Close(ctx)
}

func (n *payer) await(what string, done func() bool) {
	n.t.Helper()
	servertest.Eventually(n.t, what, done)
}

// alone is a send that is admitted while the shared history is away.
func (n *payer) alone(key string) {
	n.t.Helper()
	n.there.leave(true)
	if v, err := n.Take(context.Background(), key, throttle.NewID()); err != nil || !v.Allowed || !v.Degraded {
		n.t.Fatalf("%+v, %v", v, err)
	}
}

// admittedAlone is one that this node owes to the shared history when the disk is full.
func (n *payer) admittedAlone() (disk *tight) {
	n.t.Helper()
	n.alone("alice")
	return n.watch.ledger.tighten()
}

// back has the shared history come back and be told, and the mailbox is then reset.
func (n *payer) back() {
	n.t.Helper()
	n.there.leave(false)
	n.await("the end of the outage", func() bool { s := n.watch.State(); return !s.Degraded && s.Debts == 0 })
	if cleared, err := n.Reset(context.Background(), "alice"); cleared != 1 || err != nil {
		n.t.Fatal(cleared, err)
	}
}

// A mailbox that was reset is not charged anew after a restart for what was paid while the
// disk was full.
func TestPaidOnce(t *testing.T) {
	n := openPayer(t)
	disk := n.admittedAlone()
	n.back()
	disk.takes(enough)
	n.await("the disk to forget", func() bool { return n.watch.ledger.paid.number() == 0 })
	n.stop()
	n.start()
	n.await("the debts to be paid", func() bool { s := n.watch.State(); return !s.Degraded && s.Debts == 0 })
	if sends, err := n.there.History(context.Background(), "alice"); err != nil || len(sends) != 0 {
		t.Errorf("on record is %v, %v", sends, err)
	}
	if n.stop(); strings.Contains(n.log.String(), "once more") {
		t.Errorf("the log has %s", n.log.String())
	}
}

// What is on its way when time is up is not told to be left: a stop waits for its end.
func TestStopsWhilePaying(t *testing.T) {
	n := openPayer(t)
	on := make(chan struct{})
	n.there.during = func() {
		close(on)
		<-n.watch.ctx.Done()
	}
	n.alone("alice")
	n.there.leave(false)
	<-on
	n.stop()
	select {
	case <-n.watch.done:
	default:
		t.Error("somebody is still at work")
	}
	if log := n.log.String(); strings.Contains(log, "not all") {
		t.Errorf("the log has %s", log)
	}
}

// A stop waits for the disk to forget what is paid, for as long as it waits for anything, and
// then says what is left.
func TestStopsOnAFullDisk(t *testing.T) {
	n := openPayer(t)
	n.admittedAlone()
	n.back()
	n.stop()
	if log := n.log.String(); strings.Count(log, "it is written once more") != 1 || !strings.Contains(log, "debts=1") {
		t.Errorf("the log has %s", log)
	}

	n = openPayer(t)
	disk := n.admittedAlone()
	n.back()
	go disk.takes(enough)
	n.watch.Close(context.Background())
	if left := n.watch.ledger.paid.number(); left != 0 {
		t.Errorf("%d are left", left)
	}
}
