// Package verifytest is the suite that every verify.Book must pass.
//
// Hand [Run] a way to open a book and it checks the whole contract: every edge of a code's
// life, that a right code is right once and takes the others with it, which code makes
// room, a clock that steps back, races, and random walks against a model too naive to be
// wrong.
package verifytest

import (
	"context"
	"crypto/rand"
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/verify"
)

// Open returns a book that reads the time from now. It may share its store with others:
// the suite names every mailbox anew.
type Open func(t testing.TB, now func() int64) verify.Book

// Run checks a book against the contract, and walks it for that many random steps.
func Run(t *testing.T, open Open, steps int) {
	t.Run("nothing on record", func(t *testing.T) { nothingOnRecord(t, open) })
	t.Run("right once", func(t *testing.T) { rightOnce(t, open) })
	t.Run("every code is right", func(t *testing.T) { everyCodeIsRight(t, open) })
	t.Run("edges of a life", func(t *testing.T) { edgesOfALife(t, open) })
	t.Run("added again", func(t *testing.T) { addedAgain(t, open) })
	t.Run("the soonest makes room", func(t *testing.T) { theSoonestMakesRoom(t, open) })
	t.Run("mailboxes are apart", func(t *testing.T) { mailboxesAreApart(t, open) })
	t.Run("remove", func(t *testing.T) { remove(t, open) })
	t.Run("forget", func(t *testing.T) { forget(t, open) })
	t.Run("clock steps back", func(t *testing.T) { clockStepsBack(t, open) })
	t.Run("bad arguments", func(t *testing.T) { badArguments(t, open) })
	t.Run("ended context", func(t *testing.T) { endedContext(t, open) })
	t.Run("race for one code", func(t *testing.T) { raceForOneCode(t, open) })
	t.Run("race for several codes", func(t *testing.T) { raceForSeveralCodes(t, open) })
	t.Run("race of adding", func(t *testing.T) { raceOfAdding(t, open) })
	t.Run("random walks", func(t *testing.T) { walk(t, open, 1, steps) })
}

// start is an ordinary moment for the clock of a test.
const start = int64(1_800_000_000_000)

// minute is an ordinary life of a code.
const minute = int64(60_000)

// A patron is one mailbox in one book, for tests that do not expect errors.
type patron struct {
	t       testing.TB
	book    verify.Book
	mailbox string
}

func begin(t testing.TB, open Open) (patron, *clocktest.Clock) {
	t.Helper()
	clock := clocktest.New(start)
	return patron{t: t, book: open(t, clock.Now), mailbox: newMailbox()}, clock
}

// newMailbox is a mailbox that no other test has used, in any run on the same store.
func newMailbox() string { return rand.Text() + "@example.com" }

// code is the n-th hash. They are in the order of their numbers.
func code(n int) verify.Hash { return verify.Hash{0: byte(n >> 8), 1: byte(n), 15: 1} }

func (p patron) add(n int, lifetime int64) {
	p.t.Helper()
	if err := p.book.Add(context.Background(), p.mailbox, code(n), lifetime); err != nil {
		p.t.Fatalf("add code %d: %v", n, err)
	}
}

func (p patron) check(n int) verify.Result {
	p.t.Helper()
	result, err := p.book.Check(context.Background(), p.mailbox, code(n))
	if err != nil {
		p.t.Fatalf("check code %d: %v", n, err)
	}
	return result
}

func (p patron) expect(n int, want verify.Result) {
	p.t.Helper()
	if got := p.check(n); got != want {
		p.t.Fatalf("code %d is %v, want %v", n, got, want)
	}
}

func (p patron) remove(n int) {
	p.t.Helper()
	if err := p.book.Remove(context.Background(), p.mailbox, code(n)); err != nil {
		p.t.Fatalf("remove code %d: %v", n, err)
	}
}

func (p patron) forget() {
	p.t.Helper()
	if err := p.book.Forget(context.Background(), p.mailbox); err != nil {
		p.t.Fatalf("forget: %v", err)
	}
}
