package throttletest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/throttle"
)

// walk takes random histories of one key after the other, by random algorithms, and compares
// every answer with a model. Each refusal is tried again one millisecond before its wait is
// over, and at its end. The clock also steps back. In half of the histories a second limiter, with
// a stricter limit, takes some of the steps on the same record.
func walk(t *testing.T, open Open, steps int) {
	random := rand.New(rand.NewPCG(1, 0)) // the same histories in each run
	for taken := 0; taken < steps; {
		w := newWalker(t, open, random)
		if random.IntN(2) == 0 {
			w.addView(open)
		}
		w.story = append(w.story, fmt.Sprintf("after %d steps: %s", taken, w.views[0].Algorithm))
		taken += w.walk(min(300, steps-taken))
	}
}

// views takes a random history of one record by each algorithm through two limiters. It begins
// with more sends than the stricter one allows.
func views(t *testing.T, open Open) {
	algorithms := Counters(t, "t=10/10s")
	algorithms["tiers"] = Policy(t, "t=10/10s,u=20/60s")
	for name, a := range algorithms {
		t.Run(name, func(t *testing.T) {
			w := &walker{key: newKey(t, open, a), model: modelOf(a), window: 10_000, random: rand.New(rand.NewPCG(2, 0))}
			w.views = []view{{a, w.limiter}}
			w.addView(open)
			w.story = append(w.story, fmt.Sprint(a))
			for range 10 {
				w.sameTake(throttle.NewID())
			}
			w.viewBy(w.views[1])
			w.recordAll([]throttle.Admission{{ID: throttle.NewID(), At: w.now()}})
			w.walk(300)
		})
	}
}

type walker struct {
	key
	views      []view // one, or two on one record
	model      model
	window     int64 // of a tier, for steps of the clock
	random     *rand.Rand
	admissions []throttle.Admission // admitted or recorded
	lapsed     bool                 // the record has expired: whether a limiter still has it is not promised
	story      []string
	taken      int
}

// view is a limiter that shares the record with another.
type view struct {
	throttle.Algorithm
	limiter *throttle.Limiter
}

func newWalker(t testing.TB, open Open, random *rand.Rand) *walker {
	a, window := randomAlgorithm(t, random)
	w := &walker{key: newKey(t, open, a), model: modelOf(a), window: window, random: random}
	w.views = []view{{a, w.limiter}}
	return w
}

// addView adds a limiter with lower limits.
func (w *walker) addView(open Open) {
	a := stricter(w.t, w.views[0].Algorithm, w.random)
	w.views = append(w.views, view{a, open(w.t, w.records, a, w.now)})
}

// walk takes a number of steps, and returns it.
func (w *walker) walk(steps int) int {
	for w.taken < steps {
		w.moveClock()
		w.viewBy(w.views[w.random.IntN(len(w.views))])
		w.step()
	}
	return w.taken
}

// stricter returns the algorithm with lower limits.
func stricter(t testing.TB, a throttle.Algorithm, random *rand.Rand) throttle.Algorithm {
	lower := func(limit int) int { return 1 + random.IntN(limit) }
	lowerTier := func(tier throttle.Tier) throttle.Tier { tier.Limit = lower(tier.Limit); return tier }
	switch a := a.(type) {
	case throttle.FixedWindow:
		return must.Get(throttle.NewFixedWindow(lowerTier(a.Tier())))(t)
	case throttle.SlidingWindow:
		tier := lowerTier(a.Tier())
		return must.Get(throttle.NewSlidingWindow(tier, int((tier.Window.Milliseconds()+a.Part()-1)/a.Part())))(t)
	case throttle.TokenBucket:
		return must.Get(throttle.NewTokenBucket(a.Tier(), lower(a.Room())))(t)
	case throttle.LeakyBucket:
		return must.Get(throttle.NewLeakyBucket(a.Tier(), lower(a.Room())-1))(t)
	}
	tiers, most := a.(throttle.Policy).Tiers(), throttle.MaxKept
	for i := len(tiers) - 1; i >= 0; i-- { // none above that of a longer window
		most = lower(min(most, tiers[i].Limit))
		tiers[i].Limit = most
	}
	return must.Get(throttle.NewPolicy(tiers...))(t)
}

// viewBy has a limiter take the next steps.
func (w *walker) viewBy(v view) {
	if v.limiter != w.limiter {
		w.story = append(w.story, fmt.Sprintf("%d by %s", w.now(), v.Algorithm))
	}
	w.limiter = v.limiter
	w.model.lookBy(v.Algorithm)
}

// randomAlgorithm returns a Policy half of the time, and of those the usual one half of the
// time; and its shortest window.
func randomAlgorithm(t testing.TB, random *rand.Rand) (throttle.Algorithm, int64) {
	tier := randomTier(random)
	window := tier.Window.Milliseconds()
	switch random.IntN(8) {
	case 0:
		return must.Get(throttle.NewFixedWindow(tier))(t), window
	case 1:
		return must.Get(throttle.NewSlidingWindow(tier, 1+random.IntN(8)))(t), window
	case 2:
		return must.Get(throttle.NewTokenBucket(tier, 1+random.IntN(6)))(t), window
	case 3:
		return must.Get(throttle.NewLeakyBucket(tier, random.IntN(6)))(t), window
	case 4, 5:
		return throttle.DefaultPolicy(), 60_000
	}
	tiers := []throttle.Tier{tier}
	for i := range random.IntN(4) {
		next := randomTier(random)
		next.Name = fmt.Sprint("t", i)
		next.Limit += tiers[i].Limit
		next.Window += tiers[i].Window
		tiers = append(tiers, next)
	}
	return must.Get(throttle.NewPolicy(tiers...))(t), window
}

func randomTier(random *rand.Rand) throttle.Tier {
	window := 1 + random.IntN([]int{5, 1000, 60_000}[random.IntN(3)])
	return throttle.Tier{Name: "t", Limit: 1 + random.IntN(5), Window: time.Duration(window) * time.Millisecond}
}

// moveClock goes on by nothing, by a little, to about the end of a window, or back.
func (w *walker) moveClock() {
	switch dice := w.random.IntN(20); {
	case dice < 4:
	case dice < 11:
		w.add(w.random.Int64N(2 + w.window/4))
	case dice < 16:
		w.add(w.window - 1 + w.random.Int64N(3))
	case dice < 18:
		w.add(w.random.Int64N(1 + 3*w.window))
	case !w.lapsed && w.now() < w.model.expires()+1000: // the second in which a record is still found
		w.add(-w.random.Int64N(1 + 2*w.window))
	}
}

// step makes one call of the limiter, and of the model.
func (w *walker) step() {
	switch dice := w.random.IntN(24); {
	case dice < 12:
		w.tryTake(throttle.NewID())
	case dice < 14 && len(w.admissions) > 0:
		w.tryTake(w.recent(3).ID)
	case dice < 16:
		w.tryWait(w.samePeek())
	case dice < 19 && len(w.admissions) > 0:
		a := w.recent(5)
		w.forget()
		want := w.model.release(a)
		w.same(fmt.Sprintf("release of %d", a.At), want, w.release(a))
		w.tryWait(w.samePeek())
	case dice < 22:
		w.stepRecord()
	case dice == 22:
		w.forget()
		w.same("reset", w.model.reset(w.now()), w.reset())
	default:
		w.forget()
		if m, ok := w.model.(*logModel); ok && m.ids {
			w.same("history", byTime(m.history(w.now())), byTime(w.history()))
		}
	}
}

// recent returns one of the last admissions.
func (w *walker) recent(n int) throttle.Admission {
	return w.admissions[len(w.admissions)-1-w.random.IntN(min(n, len(w.admissions)))]
}

func (w *walker) tryTake(id throttle.ID) {
	w.tryWait(w.sameTake(id))
}

// tryWait holds a refusal to the moment that it names, and then sets the clock back to where
// it was behind the latest moment on record.
func (w *walker) tryWait(v throttle.Verdict) {
	if v.Allowed {
		return
	}
	w.set(v.RetryAt - 1)
	if w.sameTake(throttle.NewID()).Allowed {
		w.fail("admitted one millisecond early")
	}
	w.set(v.RetryAt)
	if !w.sameTake(throttle.NewID()).Allowed {
		w.fail("refused at the end of the wait")
	}
	if v.Now < v.At {
		w.set(v.Now)
	}
}

func (w *walker) sameTake(id throttle.ID) throttle.Verdict {
	w.forget()
	want := w.model.take(w.now(), id)
	v := w.take(id)
	w.same("take", want, v)
	if v.Allowed {
		w.admissions = append(w.admissions, throttle.Admission{ID: id, At: v.At})
	}
	return v
}

func (w *walker) samePeek() throttle.Verdict {
	w.forget()
	want := w.model.peek(w.now())
	v := w.peek()
	w.same("peek", want, v)
	return v
}

// stepRecord records one to three sends of now, of some time ago, at the end of a window or
// ahead of the clock, also some that are on record.
func (w *walker) stepRecord() {
	all := make([]throttle.Admission, 1+w.random.IntN(3))
	for i := range all {
		a := throttle.Admission{ID: throttle.NewID(), At: w.now()}
		switch dice := w.random.IntN(10); {
		case dice < 6:
			a.At -= w.random.Int64N(1 + 2*w.window)
		case dice < 8:
			a.At -= w.window - 1 + w.random.Int64N(3)
		case dice < 9:
			a.At += w.random.Int64N(1000)
		}
		if len(w.admissions) > 0 && w.random.IntN(4) == 0 {
			a.ID = w.recent(3).ID
		}
		all[i] = a
	}
	w.recordAll(all)
}

func (w *walker) recordAll(all []throttle.Admission) {
	w.forget()
	w.record(all...)
	slices.SortStableFunc(all, func(a, b throttle.Admission) int { return cmp.Compare(a.At, b.At) })
	for _, a := range all {
		w.model.record(w.now(), a)
		w.story = append(w.story, fmt.Sprintf("%d record of %d", w.now(), a.At))
	}
	w.admissions = append(w.admissions, all...)
	w.tryWait(w.samePeek())
}

// forget lets the model forget what has expired, and counts a step.
func (w *walker) forget() {
	w.taken++
	switch ends := w.model.expires(); {
	case ends > 0 && w.now() >= ends+1000:
		w.model.reset(w.now())
		w.lapsed = true
	case ends > 0:
		w.lapsed = false
	}
}

// byTime sorts the sends of one millisecond, which may come in any order.
func byTime(h throttle.History) string {
	h = slices.Clone(h)
	slices.SortFunc(h, func(a, b throttle.Admission) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID.String(), b.ID.String()))
	})
	return fmt.Sprint(h)
}

func (w *walker) same(call string, want, got any) {
	w.t.Helper()
	line := text(got)
	w.story = append(w.story, fmt.Sprintf("%d %s: %s", w.now(), call, line))
	if wanted := text(want); line != wanted {
		w.fail("want " + wanted)
	}
}

// text writes an answer in full. The String of a throttle.TierState is that of its tier alone.
func text(answer any) string {
	text := fmt.Sprintf("%+v", answer)
	if v, ok := answer.(throttle.Verdict); ok {
		for _, t := range v.Tiers {
			text += fmt.Sprintf(" %d/%d/%d", t.Remaining, t.Wait, t.Refill)
		}
	}
	return text
}

func (w *walker) fail(why string) {
	w.t.Helper()
	for _, line := range slices.Concat(w.story[:1], w.story[max(1, len(w.story)-20):]) {
		w.t.Log(line)
	}
	w.t.Fatal(why)
}
