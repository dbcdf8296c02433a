// Package idempotencytest is the suite that every idempotency.Keeper must pass.
//
// Hand [Run] a way to open a keeper and it checks the whole contract: that an answer is
// given again byte for byte, every edge of a lease and of an answer's life, who may finish
// what, names that look alike, a clock that steps back, races, and random walks against a
// model too naive to be wrong.
package idempotencytest

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/idempotency"
)

// Open returns a keeper with these terms that reads the time from now. It may share its
// store with others: the suite names every caller anew.
type Open func(t testing.TB, terms idempotency.Terms, now func() int64) idempotency.Keeper

// Run checks a keeper against the contract, and walks it for that many random steps.
func Run(t *testing.T, open Open, steps int) {
	t.Run("once and again", func(t *testing.T) { onceAndAgain(t, open) })
	t.Run("byte for byte", func(t *testing.T) { byteForByte(t, open) })
	t.Run("another body", func(t *testing.T) { anotherBody(t, open) })
	t.Run("edges of a lease", func(t *testing.T) { edgesOfALease(t, open) })
	t.Run("edges of a life", func(t *testing.T) { edgesOfALife(t, open) })
	t.Run("late finish", func(t *testing.T) { lateFinish(t, open) })
	t.Run("first answer stays", func(t *testing.T) { firstAnswerStays(t, open) })
	t.Run("begin as", func(t *testing.T) { beginAs(t, open) })
	t.Run("abandon", func(t *testing.T) { abandon(t, open) })
	t.Run("names are apart", func(t *testing.T) { namesAreApart(t, open) })
	t.Run("answers are copies", func(t *testing.T) { answersAreCopies(t, open) })
	t.Run("clock steps back", func(t *testing.T) { clockStepsBack(t, open) })
	t.Run("bad arguments", func(t *testing.T) { badArguments(t, open) })
	t.Run("ended context", func(t *testing.T) { endedContext(t, open) })
	t.Run("race to begin", func(t *testing.T) { raceToBegin(t, open) })
	t.Run("race for a lost lease", func(t *testing.T) { raceForALostLease(t, open) })
	t.Run("race to the end", func(t *testing.T) { raceToTheEnd(t, open) })
	t.Run("race of late answers", func(t *testing.T) { raceOfLateAnswers(t, open) })
	t.Run("random walks", func(t *testing.T) { walk(t, open, 1, steps) })
}

// start is an ordinary moment for the clock of a test.
const start = int64(1_800_000_000_000)

// A patron sends requests under one name, for tests that do not expect errors.
type patron struct {
	t      testing.TB
	keeper idempotency.Keeper
	name   idempotency.Name
	terms  idempotency.Terms
}

func begin(t testing.TB, open Open) (patron, *clocktest.Clock) {
	t.Helper()
	clock, terms := clocktest.New(start), idempotency.DefaultTerms()
	return patron{t: t, keeper: open(t, terms, clock.Now), name: newName(), terms: terms}, clock
}

// newName is a name that no other test has used, in any run on the same store.
func newName() idempotency.Name { return idempotency.Name{Caller: rand.Text(), Key: "key"} }

// body is the fingerprint of the n-th request.
func body(n int) idempotency.Fingerprint {
	return idempotency.Fingerprint{0: byte(n >> 8), 31: byte(n)}
}

// answer is the n-th answer.
func answer(n int) idempotency.Answer {
	return idempotency.Answer{
		Status: 200,
		Header: []idempotency.Field{{Name: "Content-Type", Value: "application/json"}},
		Body:   fmt.Appendf(nil, `{"number":%d}`, n),
	}
}

func (p patron) ask(n int) idempotency.Outcome {
	p.t.Helper()
	o, err := p.keeper.Begin(context.Background(), p.name, body(n))
	if err != nil {
		p.t.Fatalf("begin: %v", err)
	}
	return o
}

// started begins and insists that it is told to go on.
func (p patron) started(n int) idempotency.Lease {
	p.t.Helper()
	o := p.ask(n)
	if o.State != idempotency.Started || o.Lease.Name != p.name || o.Lease.Body != body(n) || o.Lease.Token.IsZero() {
		p.t.Fatalf("%v, want a request started", o.State)
	}
	return o.Lease
}

func (p patron) inFlight(n int, retryAfter int64) {
	p.t.Helper()
	if o := p.ask(n); o.State != idempotency.InFlight || o.RetryAfter != retryAfter {
		p.t.Fatalf("%v, retry after %d; want in flight, retry after %d", o.State, o.RetryAfter, retryAfter)
	}
}

func (p patron) replay(n int, want idempotency.Answer) {
	p.t.Helper()
	o := p.ask(n)
	if o.State != idempotency.Replay || !same(o.Answer, want) {
		p.t.Fatalf("%v of %d %v %.99q, want a replay of %d %v %.99q", o.State,
			o.Answer.Status, o.Answer.Header, o.Answer.Body, want.Status, want.Header, want.Body)
	}
}

func (p patron) mismatch(n int) {
	p.t.Helper()
	if o := p.ask(n); o.State != idempotency.Mismatch {
		p.t.Fatalf("%v, want a mismatch", o.State)
	}
}

func (p patron) finish(lease idempotency.Lease, a idempotency.Answer, want bool) {
	p.t.Helper()
	if kept, err := p.keeper.Finish(context.Background(), lease, a); kept != want || err != nil {
		p.t.Fatalf("finish: kept %t, %v; want %t", kept, err, want)
	}
}

func (p patron) abandon(lease idempotency.Lease, want bool) {
	p.t.Helper()
	if freed, err := p.keeper.Abandon(context.Background(), lease); freed != want || err != nil {
		p.t.Fatalf("abandon: freed %t, %v; want %t", freed, err, want)
	}
}

func same(a, b idempotency.Answer) bool {
	return a.Status == b.Status && slices.Equal(a.Header, b.Header) && bytes.Equal(a.Body, b.Body)
}
