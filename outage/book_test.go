package outage_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/outage"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/verify"
	"github.com/mailgate/mailgate/verify/local"
	"github.com/mailgate/mailgate/verify/verifytest"
)

// A desk is a node's codes.
type desk struct {
	*outage.Book
	t     *testing.T
	watch *outage.Watch
	there *sharedBook
	clock *clocktest.Clock
	disk  *cache.Disk // of what is owed
}

func openDesk(t *testing.T) *desk {
	t.Helper()
	d := idleDesk(t)
	d.watch.Start()
	return d
}

// idleDesk is one where nobody works in the background.
func idleDesk(t *testing.T) *desk {
	t.Helper()
	return idleDeskOn(t, cachetest.Open(t, cache.Memory))
}

func idleDeskOn(t *testing.T, disk *cache.Disk) *desk {
	t.Helper()
	d := &desk{t: t, clock: clocktest.New(start), disk: disk}
	book, err := local.New(cachetest.Open(t, cache.Memory), local.Options{Now: d.clock.Now, Size: cache.Size{Entries: 100, Bytes: 1 << 18}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(book.Close)
	d.there = &sharedBook{Book: book, now: d.clock.Now}
	d.watch, err = outage.NewWatch(outage.Options{
		Disk: d.disk, Away: unavailableIsAway, Shared: d.there.ready, Now: d.clock.Now, Pause: 2 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	d.Book = d.watch.Book(d.there)
	t.Cleanup(func() { closeAtOnce(d.watch) })
	return d
}

// add insists, as a desk does, but on the same code.
func (d *desk) add(h verify.Hash) {
	d.t.Helper()
	err := d.Add(context.Background(), alice, h, 60_000)
	if errors.Is(err, verify.ErrMayBeRight) {
		err = d.Add(context.Background(), alice, h, 60_000)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) check(h verify.Hash, want verify.Result) {
	d.t.Helper()
	if got, err := d.Check(context.Background(), alice, h); err != nil || got != want {
		d.t.Errorf("%v, %v; want %v", got, err, want)
	}
}

// nobodyKnows wants a check to have no answer.
func (d *desk) nobodyKnows(h verify.Hash) {
	d.t.Helper()
	if got, err := d.Check(context.Background(), alice, h); !errors.Is(err, verify.ErrUnavailable) {
		d.t.Errorf("%v, %v", got, err)
	}
}

func (d *desk) back() {
	d.t.Helper()
	d.there.set(none)
	awaitHealth(d.t, d.watch)
}

var first, second, third = verify.Hash{1}, verify.Hash{2}, verify.Hash{3}

// Together the book is one like any other.
func TestBookConforms(t *testing.T) {
	disk := cachetest.Open(t, cache.Memory)
	verifytest.Run(t, func(t testing.TB, now func() int64) verify.Book {
		book, err := local.New(disk, local.Options{Now: now, Name: throttle.NewID().String(), Size: cache.Size{Entries: 64, Bytes: 1 << 16}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(book.Close)
		return openWatch(t, cachetest.Open(t, cache.Memory), new(line)).Book(&sharedBook{Book: book})
	}, 500)
}

// A code that was made alone is right alone, once, and of others nobody knows.
func TestCodesAlone(t *testing.T) {
	for name, fault := range map[string]fault{"dead": dead, "unheard": unheard} {
		t.Run(name, func(t *testing.T) {
			d := openDesk(t)
			d.add(first)
			d.there.set(fault)
			d.add(second)
			d.add(third)
			d.nobodyKnows(verify.Hash{9})
			if name == "unheard" { // it is right there now
				d.nobodyKnows(second)
			}
			d.check(third, verify.Correct)
			d.nobodyKnows(third)
			d.nobodyKnows(second) // all are forgotten with the one
			d.back()
			for _, h := range []verify.Hash{first, second, third} {
				d.check(h, verify.Expired)
			}
		})
	}
}

// One that nobody has used is right together, for as long as it would have been.
func TestCodesComeBack(t *testing.T) {
	d := openDesk(t)
	d.there.set(silent)
	d.add(first)
	d.clock.Add(10_000)
	d.add(second)
	d.clock.Add(40_000)
	d.back()
	d.check(third, verify.Incorrect)
	d.clock.Add(10_000)
	d.check(first, verify.Incorrect)
	d.check(second, verify.Correct)
	d.there.set(dead)
	d.nobodyKnows(second)
}

// One that expired, or whose mail never left, is not right any more, alone and together.
func TestCodesThatAreOver(t *testing.T) {
	d := openDesk(t)
	ctx := context.Background()
	d.add(first)
	d.there.set(unheard)
	d.add(second)
	for _, h := range []verify.Hash{first, second} {
		if err := d.Remove(ctx, alice, h); err != nil {
			t.Fatal(err)
		}
	}
	d.nobodyKnows(second)
	d.back()
	d.check(first, verify.Expired)
	d.check(second, verify.Expired)
	d.there.set(dead)
	d.add(third)
	d.clock.Add(60_000)
	d.nobodyKnows(third)
	d.back()
	d.check(third, verify.Expired)
}

// Forgetting needs the shared book.
func TestForgetNeedsTheOthers(t *testing.T) {
	d := openDesk(t)
	ctx := context.Background()
	d.there.set(dead)
	d.add(first)
	if err := d.Forget(ctx, alice); !errors.Is(err, verify.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	d.back()
	if err := d.Forget(ctx, alice); err != nil {
		t.Error(err)
	}
	d.check(first, verify.Expired)
}

// What is done neither there nor here is an error that says so once, with both reasons.
func TestNeitherThereNorHere(t *testing.T) {
	d := openDesk(t)
	ctx := context.Background()
	d.there.set(dead)
	d.add(first)
	if err := d.disk.Close(); err != nil {
		t.Fatal(err)
	}
	_, check := d.Check(ctx, alice, first)
	for doing, err := range map[string]error{
		"checking a code": check,
		"asking":          d.Add(ctx, "bob@example.com", second, 60_000), // the words of the one there
		"removing a code": d.Remove(ctx, alice, first),
	} {
		if !errors.Is(err, verify.ErrUnavailable) || !errors.Is(err, cache.ErrClosed) || strings.Count(err.Error(), doing) != 1 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", doing, err)
		}
	}
}

// The shared book is told in the order in which things were done: a code that was made after
// all were forgotten is right.
func TestCodesAreToldInOrder(t *testing.T) {
	d := openDesk(t)
	d.add(second)
	d.there.set(dead)
	d.add(first)
	d.check(first, verify.Correct)
	d.add(third)
	d.there.during = func() {
		if got, err := d.there.Book.Check(context.Background(), alice, second); err != nil || got != verify.Expired {
			t.Errorf("before the next is added: %v, %v", got, err)
		}
	}
	d.back()
	d.check(third, verify.Correct)
}

// A code that is made after all were forgotten is right, also where the shared book answers
// again and has not been told of that yet; and where it cannot be told now.
func TestCodeAfterAllWereForgotten(t *testing.T) {
	for name, met := range map[string]bool{"told first": true, "told later": false} {
		t.Run(name, func(t *testing.T) {
			d := idleDesk(t)
			if met { // only then is it told of anything before it has been asked for that
				d.check(first, verify.Expired)
			}
			d.there.set(dead)
			d.add(first)
			d.check(first, verify.Correct)
			d.there.set(none)
			d.add(second)
			if owed := d.watch.State().Debts; (owed == 0) != met {
				t.Errorf("%d steps are owed", owed)
			}
			d.watch.Start()
			d.back()
			d.check(first, verify.Incorrect)
			d.check(second, verify.Correct)
		})
	}
}

// However a code comes to be kept, it is kept for as long as any may be.
func TestLifetimeOfACodeAlone(t *testing.T) {
	d := idleDesk(t)
	d.there.set(dead)
	d.add(first)
	for _, lifetime := range []int64{0, verify.MaxLifetime + 1} {
		if err := d.Add(context.Background(), alice, second, lifetime); !errors.Is(err, verify.ErrLifetime) {
			t.Errorf("%d ms: %v", lifetime, err)
		}
	}
}

// While the shared book is told of a code it may answer for it at any moment, so nobody else
// does.
func TestCodeThatIsOnItsWay(t *testing.T) {
	d := openDesk(t)
	d.there.set(dead)
	d.add(first)
	d.there.during = func() { d.nobodyKnows(first) }
	d.back()
	if d.there.during != nil {
		t.Error("it was never on its way")
	}
	d.check(first, verify.Correct)
	d.check(first, verify.Expired)
}

// Of many who bring a right code while the shared book comes and goes one is told so.
func TestCodeIsRightOnce(t *testing.T) {
	d := openDesk(t)
	for i := range 100 {
		h := verify.Hash{4, byte(i)}
		d.there.set(dead)
		d.add(h)
		right := make(chan bool, 8)
		go d.there.set(none)
		for range cap(right) {
			go func() {
				result, err := d.Check(context.Background(), alice, h)
				right <- err == nil && result == verify.Correct
			}()
		}
		times := 0
		for range cap(right) {
			if <-right {
				times++
			}
		}
		if times > 1 {
			t.Fatalf("right %d times", times)
		}
		d.back()
	}
}

// A guess that was counted alone asks the shared book nothing, though that answers.
func TestCodesOfTheSharedBookAlone(t *testing.T) {
	d := openDesk(t)
	ctx := context.Background()
	alone := func(h verify.Hash) (verify.Result, error) { return d.CheckAlone(ctx, alice, h) }
	d.add(first)
	for _, h := range []verify.Hash{first, second} {
		if got, err := alone(h); got != verify.Expired || !errors.Is(err, verify.ErrUnavailable) {
			t.Errorf("%v, %v", got, err)
		}
	}
	d.there.set(dead)
	d.add(second)
	ended, end := context.WithCancel(ctx)
	end()
	if _, err := d.CheckAlone(ended, alice, second); !errors.Is(err, verify.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits: %v", err)
	}
	if _, err := d.CheckAlone(ctx, "", second); !errors.Is(err, throttle.ErrKey) {
		t.Errorf("of nobody: %v", err)
	}
	if got, err := alone(second); got != verify.Correct || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := alone(second); !errors.Is(err, verify.ErrUnavailable) {
		t.Errorf("used up: %v, %v", got, err)
	}
	d.back()
	d.check(first, verify.Expired) // all were forgotten with the one
}

// A code that the shared book may have, though nobody heard of it, is not kept here as well:
// used up there, it would be right once more here, and there when this node has told of it.
func TestACodeThatMayBeThereIsNotKeptHere(t *testing.T) {
	d := openDesk(t)
	ctx := context.Background()
	d.there.set(unheard)
	if err := d.Add(ctx, alice, first, 60_000); !errors.Is(err, verify.ErrMayBeRight) || !errors.Is(err, verify.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if err := d.Add(ctx, alice, second, 60_000); err != nil {
		t.Errorf("another: %v", err)
	}
	if got, err := d.there.Book.Check(ctx, alice, second); err != nil || got == verify.Correct {
		t.Errorf("another, elsewhere: %v, %v", got, err)
	}
	d.nobodyKnows(first)
	d.back()
	d.check(first, verify.Incorrect)
	d.check(second, verify.Correct)
	d.check(second, verify.Expired)
}
