package throttletest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/throttle"
)

// Walk leads a limiter through random histories and compares every answer with a
// naive model. Each denial, of a take or a peek, is tried again one millisecond before its
// wait is over, and when it is over, also where the clock had stepped back. A failure names
// the seed. Under -short it goes a tenth of the steps.
func Walk(t *testing.T, open Open, seed uint64, steps int) {
	steps = Length(steps)
	random := rand.New(rand.NewPCG(seed, 0))
	for walked := 0; walked < steps; {
		w := newWalker(t, open, random, seed)
		walked += w.walk(min(2000, steps-walked))
	}
}

type walker struct {
	patron
	random *rand.Rand
	clock  *clocktest.Clock
	model  model
	story  []string // what was done, to tell when it goes wrong
	ids    []throttle.ID
	seed   uint64
	taken  int
}

func newWalker(t testing.TB, open Open, random *rand.Rand, seed uint64) *walker {
	w := &walker{random: random, clock: clocktest.New(start), seed: seed}
	p := randomPolicy(t, random)
	w.patron = patron{t: t, limiter: open(t, p, w.clock.Now), mailbox: newMailbox("walk")}
	w.model.tiers = p.Tiers()
	w.story = append(w.story, p.String())
	return w
}

// randomPolicy is the usual policy half of the time, else up to four tiers.
func randomPolicy(t testing.TB, random *rand.Rand) throttle.Policy {
	if random.IntN(2) == 0 {
		return throttle.DefaultPolicy()
	}
	var tiers []throttle.Tier
	limit, window := 0, int64(0)
	for i := range 1 + random.IntN(4) {
		limit += 1 + random.IntN(4)
		window += 1 + random.Int64N(1+window*3+[]int64{5, 1000, 60_000}[random.IntN(3)])
		tiers = append(tiers, throttle.Tier{Name: fmt.Sprint("t", i), Limit: limit, Window: window})
	}
	p, err := throttle.NewPolicy(tiers...)
	if err != nil {
		t.Fatalf("random policy: %v", err)
	}
	return p
}

// walk takes up to the given number of steps on this mailbox.
func (w *walker) walk(steps int) int {
	for w.taken < steps {
		w.moveClock()
		if _, records := w.recorder(); records && w.random.IntN(8) == 0 {
			w.stepRecord()
			continue
		}
		switch dice := w.random.IntN(20); {
		case dice < 13:
			w.stepTake()
		case dice < 15:
			w.stepAgain()
		case dice < 17:
			w.samePeek("peek")
		case dice < 19:
			w.stepRelease()
		case w.random.IntN(4) == 0:
			w.same("reset", fmt.Sprint(w.model.reset(w.clock.Now())), fmt.Sprint(w.reset()))
		default:
			w.stepHistory()
		}
	}
	return w.taken
}

// moveClock goes on by nothing, by a little, to about the edge of a window, or back.
func (w *walker) moveClock() {
	tier := w.model.tiers[w.random.IntN(len(w.model.tiers))]
	switch dice := w.random.IntN(20); {
	case dice < 4:
	case dice < 12:
		w.clock.Add(w.random.Int64N(1 + tier.Window/int64(tier.Limit)))
	case dice < 18:
		w.clock.Add(tier.Window - 1 + w.random.Int64N(3))
	case len(w.model.sends) > 0 && dice == 18:
		w.clock.Set(w.model.now(0) - w.random.Int64N(5000))
	default:
		w.clock.Add(w.random.Int64N(1 + tier.Window))
	}
}

func (w *walker) stepTake() {
	id := throttle.NewID()
	if w.tryTake(id) {
		w.ids = append(w.ids, id)
	}
}

// tryTake takes, and where that is denied tries the wait.
func (w *walker) tryTake(id throttle.ID) (allowed bool) {
	v := w.sameTake(id)
	w.tryWait(v)
	return v.Allowed
}

// tryWait holds a denial to the moment it names: a millisecond before it there is another,
// and then an admission. A clock that was behind the newest send goes back to where it was,
// so that more is done there than to wait.
func (w *walker) tryWait(v throttle.Verdict) {
	if v.Allowed {
		return
	}
	before, until := w.clock.Now(), v.RetryAt()
	behind := before < w.model.now(0)
	w.clock.Set(until - 1)
	if v := w.sameTake(throttle.NewID()); v.Allowed {
		w.fail("admitted one millisecond early")
	}
	w.clock.Set(until)
	id := throttle.NewID()
	if v := w.sameTake(id); !v.Allowed {
		w.fail("denied at the end of the wait")
	}
	w.ids = append(w.ids, id)
	if behind {
		w.clock.Set(before)
	}
}

func (w *walker) sameTake(id throttle.ID) throttle.Verdict {
	v := w.take(id)
	w.same("take", w.model.take(w.clock.Now(), id), spell(v))
	return v
}

// samePeek looks how things are after something was done, or just so.
func (w *walker) samePeek(after string) {
	v := w.peek()
	w.same(after, w.model.peek(w.clock.Now()), spell(v))
	w.tryWait(v)
}

// stepAgain repeats a take, as a caller does that never got its answer.
func (w *walker) stepAgain() {
	if len(w.ids) > 0 {
		w.tryTake(w.ids[len(w.ids)-1-w.random.IntN(min(3, len(w.ids)))])
	}
}

func (w *walker) stepRelease() {
	if len(w.ids) == 0 {
		return
	}
	id := w.ids[len(w.ids)-1-w.random.IntN(min(4, len(w.ids)))]
	if !w.model.known(w.clock.Now(), id) {
		return // whether what no longer matters is still on record is not promised
	}
	if !w.release(id) {
		w.fail("an admission was not given back")
	}
	w.model.release(id)
	w.samePeek("release")
}

func (w *walker) stepHistory() {
	want := spellHistory(w.model.live(w.clock.Now()))
	w.same("history", want, spellHistory(w.history()))
}

// spellHistory writes a history; sends of one millisecond may come in any order.
func spellHistory(h throttle.History) string {
	sorted := slices.Clone(h)
	slices.SortFunc(sorted, byTime)
	return fmt.Sprint(sorted)
}

func (w *walker) same(op, want, got string) {
	w.t.Helper()
	w.taken++
	w.story = append(w.story, fmt.Sprintf("%d %s: %s", w.clock.Now(), op, got))
	if got != want {
		w.fail("want " + want)
	}
}

func (w *walker) fail(why string) {
	w.t.Helper()
	for _, line := range slices.Concat(w.story[:1], w.story[max(1, len(w.story)-30):]) {
		w.t.Log(line)
	}
	w.t.Fatalf("seed %d: %s", w.seed, why)
}
