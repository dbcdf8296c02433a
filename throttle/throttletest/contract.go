package throttletest

import (
	"slices"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/throttle"
)

const usual = "minute=1/60s,hour=5/1h,day=10/24h"

func begin(t testing.TB, open Open, tiers string) (patron, *clocktest.Clock) {
	t.Helper()
	clock := clocktest.New(start)
	return patron{t: t, limiter: open(t, Policy(t, tiers), clock.Now), mailbox: newMailbox("contract")}, clock
}

func firstSend(t *testing.T, open Open) {
	p, _ := begin(t, open, usual)
	expect(t, p.peek(), "yes  0 [minute 1 0] [hour 5 0] [day 10 0]")
	v := p.take(throttle.NewID())
	expect(t, v, "yes minute 60000 [minute 0 60000] [hour 4 0] [day 9 0]")
	if v.Now != start || v.RetryAt() != start+60_000 {
		t.Fatalf("now %d, retry at %d; want %d and %d", v.Now, v.RetryAt(), start, start+60_000)
	}
}

func denialChangesNothing(t *testing.T, open Open) {
	p, clock := begin(t, open, usual)
	p.admit()
	before := p.history()
	for range 200 {
		clock.Add(299)
		if v := p.take(throttle.NewID()); v.Allowed {
			t.Fatalf("admitted after %d ms", clock.Now()-start)
		}
	}
	if after := p.history(); !slices.Equal(before, after) {
		t.Fatalf("denials changed the history from %v to %v", before, after)
	}
	clock.Set(start + 60_000)
	p.admit()
}

func edgesOfAWait(t *testing.T, open Open) {
	p, clock := begin(t, open, usual)
	waited := map[string]int{}
	for range 30 {
		v := p.take(throttle.NewID())
		if !v.Allowed {
			t.Fatalf("not allowed at the end of the wait: %s", spell(v))
		}
		until := v.RetryAt()
		waited[v.Limit]++
		clock.Set(until - 1)
		if v = p.take(throttle.NewID()); v.Allowed || v.Wait != 1 {
			t.Fatalf("one millisecond before the end of the wait: %s", spell(v))
		}
		clock.Set(until)
		if v = p.peek(); !v.Allowed {
			t.Fatalf("peek at the end of the wait: %s", spell(v))
		}
	}
	for _, tier := range []string{"minute", "hour", "day"} {
		if waited[tier] == 0 {
			t.Errorf("tier %s never made anybody wait", tier)
		}
	}
}

func longestWaitNamesTheLimit(t *testing.T, open Open) {
	p, clock := begin(t, open, "short=1/1s,long=2/4s")
	p.admit()
	clock.Add(3000)
	p.admit()
	// short: full until 4000. long: full until 4000. A tie goes to the longer window.
	expect(t, p.take(throttle.NewID()), "no long 1000 [short 0 1000] [long 0 1000]")
	clock.Add(999)
	expect(t, p.take(throttle.NewID()), "no long 1 [short 0 1] [long 0 1]")
	clock.Add(1)
	expect(t, p.take(throttle.NewID()), "yes long 3000 [short 0 1000] [long 0 3000]")
}

func takeIsIdempotent(t *testing.T, open Open) {
	p, clock := begin(t, open, usual)
	id := throttle.NewID()
	first := p.take(id)
	expect(t, p.take(id), spell(first))
	clock.Add(1000)
	expect(t, p.take(id), "yes minute 59000 [minute 0 59000] [hour 4 0] [day 9 0]")
	if h := p.history(); len(h) != 1 || h[0].ID != id || h[0].At != start {
		t.Fatalf("history %v, want one admission %s at %d", h, id, start)
	}
	expect(t, p.take(throttle.NewID()), "no minute 59000 [minute 0 59000] [hour 4 0] [day 9 0]")
	// A denied id was never on record: it is decided anew.
	denied := throttle.NewID()
	p.take(denied)
	clock.Set(start + 60_000)
	if v := p.take(denied); !v.Allowed {
		t.Fatalf("an id that was denied before: %s", spell(v))
	}
	// What has left every window is forgotten, and its id with it.
	clock.Set(start + 10*86_400_000)
	expect(t, p.take(id), "yes minute 60000 [minute 0 60000] [hour 4 0] [day 9 0]")
	if h := p.history(); len(h) != 1 || h[0].At != clock.Now() {
		t.Fatalf("history %v, want one admission at %d", h, clock.Now())
	}
}

func release(t *testing.T, open Open) {
	p, clock := begin(t, open, "minute=2/60s,hour=3/1h")
	first := p.admit()
	second := p.admit() // in the same millisecond
	expect(t, p.take(throttle.NewID()), "no minute 60000 [minute 0 60000] [hour 1 0]")
	if p.release(throttle.NewID()) {
		t.Fatal("released an id that was never admitted")
	}
	if !p.release(first) {
		t.Fatal("an admission was not given back")
	}
	if p.release(first) {
		t.Fatal("one admission was given back twice")
	}
	expect(t, p.peek(), "yes  0 [minute 1 0] [hour 2 0]")
	clock.Add(1000)
	third := p.admit()
	expect(t, p.peek(), "no minute 59000 [minute 0 59000] [hour 1 0]")
	if !p.release(second) || !p.release(third) {
		t.Fatal("an admission was not given back")
	}
	expect(t, p.peek(), "yes  0 [minute 2 0] [hour 3 0]")
	if h := p.history(); len(h) != 0 {
		t.Fatalf("history %v after all was given back", h)
	}
}

func reset(t *testing.T, open Open) {
	p, clock := begin(t, open, "minute=2/60s,hour=3/1h")
	if n := p.reset(); n != 0 {
		t.Fatalf("reset of an unknown mailbox cleared %d", n)
	}
	p.admit()
	clock.Add(3_600_000 - 1)
	p.admit()
	clock.Add(1) // the first has left the hour
	if n := p.reset(); n != 1 {
		t.Fatalf("reset cleared %d, want 1", n)
	}
	expect(t, p.peek(), "yes  0 [minute 2 0] [hour 3 0]")
	p.admit()
	p.admit()
	if n := p.reset(); n != 2 {
		t.Fatalf("reset cleared %d, want 2", n)
	}
	expect(t, p.take(throttle.NewID()), "yes  0 [minute 1 0] [hour 2 0]")
}

func history(t *testing.T, open Open) {
	p, clock := begin(t, open, "minute=2/60s,hour=3/1h")
	if h := p.history(); len(h) != 0 {
		t.Fatalf("history %v of an unknown mailbox", h)
	}
	want := throttle.History{{ID: p.admit(), At: start}}
	clock.Add(60_000)
	want = append(want, throttle.Admission{ID: p.admit(), At: start + 60_000})
	if h := p.history(); !slices.Equal(h, want) {
		t.Fatalf("history %v, want %v", h, want)
	}
	clock.Set(start + 3_600_000) // exactly one window later the first is outside
	if h := p.history(); !slices.Equal(h, want[1:]) {
		t.Fatalf("history %v, want %v", h, want[1:])
	}
}

func mailboxesAreApart(t *testing.T, open Open) {
	p, _ := begin(t, open, usual)
	p.admit()
	for _, other := range []string{p.mailbox + " ", strings.ToUpper(p.mailbox), p.mailbox[1:], p.mailbox + "\x00", "{" + p.mailbox + "}", "*"} {
		q := patron{t: t, limiter: p.limiter, mailbox: other + newMailbox("apart")}
		q.admit()
		if n := q.reset(); n != 1 {
			t.Fatalf("reset of mailbox %q cleared %d", other, n)
		}
	}
	if h := p.history(); len(h) != 1 {
		t.Fatalf("other mailboxes changed the history to %v", h)
	}
}

func clockStepsBack(t *testing.T, open Open) {
	p, clock := begin(t, open, "minute=2/60s,hour=4/1h")
	p.admit()
	clock.Add(30_000)
	p.admit()
	clock.Set(start - 86_400_000)
	// The day before counts as the newest send: no window reopens, none grows.
	v := p.take(throttle.NewID())
	expect(t, v, "no minute 30000 [minute 0 30000] [hour 2 0]")
	if v.Now != clock.Now() {
		t.Fatalf("the verdict's clock is %d, want the clock as read, %d", v.Now, clock.Now())
	}
	// What it says of the moment is true all the same.
	clock.Set(v.RetryAt() - 1)
	if p.peek().Allowed {
		t.Fatal("allowed one millisecond before the moment that was told")
	}
	clock.Set(v.RetryAt())
	p.admit()
	clock.Set(start - 1)
	if h := p.history(); len(h) != 3 || h[2].At != start+60_000 {
		t.Fatalf("history %v, want three admissions, the newest at %d", h, start+60_000)
	}
	// An admission while the clock is behind is recorded at the newest send.
	q, clock := begin(t, open, "minute=2/60s")
	q.admit()
	clock.Add(-5000)
	q.admit()
	if h := q.history(); h[1].At != start {
		t.Fatalf("admitted at %d while the newest send was %d", h[1].At, start)
	}
}

func endedContext(t *testing.T, open Open) {
	p, _ := begin(t, open, usual)
	p.endedContext()
	if h := p.history(); len(h) != 0 {
		t.Fatalf("history %v, want nothing recorded", h)
	}
}

func badArguments(t *testing.T, open Open) {
	p, _ := begin(t, open, usual)
	p.badArguments()
}
