package meter_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// randomMeter is of any algorithm, with small numbers.
func randomMeter(random *rand.Rand) meter.Meter {
	t := tier(1+random.IntN(6), []int64{1 + random.Int64N(30), 1000, minute}[random.IntN(3)])
	switch random.IntN(4) {
	case 0:
		return must(meter.NewFixedWindow(t))
	case 1:
		return must(meter.NewSlidingWindow(t, random.IntN(20)))
	case 2:
		return must(meter.NewTokenBucket(t, random.IntN(8)))
	}
	return must(meter.NewLeakyBucket(t, random.IntN(8)))
}

// manyLives is how many lives there are to look at.
func manyLives() int {
	if testing.Short() {
		return 150
	}
	return 400
}

// lives calls look at many moments in the lives of many keys.
func lives(t *testing.T, look func(t *testing.T, m meter.Meter, s meter.State, now int64)) {
	const seed = 5
	random := rand.New(rand.NewPCG(seed, 0))
	for life := range manyLives() {
		m, s, now := randomMeter(random), meter.State{}, start+random.Int64N(minute)
		t.Run(fmt.Sprintf("seed %d life %d, %s", seed, life, m), func(t *testing.T) {
			for range 60 {
				now += random.Int64N(2+m.Tier().Window/int64(m.Tier().Limit)) - random.Int64N(3)
				look(t, m, s.Clone(), now)
				if random.IntN(4) == 0 {
					m.Count(&s, now)
				}
				if m.Take(&s, throttle.NewID(), now); random.IntN(6) == 0 && len(s.Held) > 0 {
					m.Release(&s, s.Held[len(s.Held)-1-random.IntN(min(2, len(s.Held)))].ID, now)
				}
			}
		})
	}
}

// same compares what a state holds; memory kept for later is no part of it.
func same(a, b meter.State) bool {
	for _, s := range []*meter.State{&a, &b} {
		if len(s.Parts) == 0 {
			s.Parts = nil
		}
		if len(s.Held) == 0 {
			s.Held = nil
		}
	}
	return reflect.DeepEqual(a, b)
}

func TestWhatChangesNothing(t *testing.T) {
	lives(t, func(t *testing.T, m meter.Meter, s meter.State, now int64) {
		before := s.Clone()
		look := m.Look(&s, now)
		m.Used(&s, now)
		m.Expires(&s)
		if m.Release(&s, idOf("unknown"), now) || !same(s, before) {
			t.Fatalf("to look, or to give back what is not there, changed\n%+v to\n%+v", before, s)
		}
		counted := s.Clone()
		r := m.Count(&counted, now)
		if r.Allowed != look.Allowed || r.Allowed && r.Delay != look.Delay || !r.Allowed && !same(counted, before) {
			t.Fatalf("looked %v, counted %v\nfrom %+v\n  to %+v", look, r, before, counted)
		}
		id := throttle.NewID()
		v, changed := m.Take(&s, id, now)
		if v.Allowed != look.Allowed || v.Allowed != changed || v.Allowed && v.Delay != look.Delay {
			t.Fatalf("looked %v, took %v, changed %v", look, v, changed)
		}
		if !changed && !same(s, before) {
			t.Fatalf("a denial changed\n%+v to\n%+v", before, s)
		}
		if after := s.Clone(); changed {
			if again, changed := m.Take(&s, id, now); changed || !again.Allowed || !same(s, after) || again != v {
				t.Fatalf("taken again: %v, changed %v\nfrom %+v\n  to %+v", again, changed, after, s)
			}
		}
	})
}

func TestEqualQuestionsHaveEqualAnswers(t *testing.T) {
	lives(t, func(t *testing.T, m meter.Meter, s meter.State, now int64) {
		other := s.Clone()
		// Memory that was used before is no part of a state.
		other.Parts, other.Held = append(make([]int64, 0, 50), other.Parts...), append(make(throttle.History, 0, 50), other.Held...)
		id := throttle.NewID()
		v, changed := m.Take(&s, id, now)
		w, altered := m.Take(&other, id, now)
		if v != w || changed != altered || !same(s, other) {
			t.Fatalf("%v and %v\n%+v\n%+v", v, w, s, other)
		}
	})
}

// As if never taken: whoever looks afterwards, at whatever moment, sees what he would have
// seen.
func TestReleaseLeavesNoTrace(t *testing.T) {
	lives(t, func(t *testing.T, m meter.Meter, s meter.State, now int64) {
		before, id := s.Clone(), throttle.NewID()
		if v, _ := m.Take(&s, id, now); !v.Allowed {
			return
		}
		if !m.Release(&s, id, now) || m.Release(&s, id, now) {
			t.Fatal("not given back, or twice")
		}
		if s.Count == 0 && !same(s, meter.State{}) {
			t.Fatalf("nothing counts, and %+v is left", s)
		}
		window := m.Tier().Window
		for later := int64(0); later < 2*window; later += 1 + window/40 {
			got, want := m.Look(&s, now+later), m.Look(&before, now+later)
			if got != want || m.Used(&s, now+later) != m.Used(&before, now+later) {
				t.Fatalf("%d ms later: %v, want %v", later, got, want)
			}
		}
	})
}

// A state says nothing from the moment it expires, and something until then.
func TestExpires(t *testing.T) {
	lives(t, func(t *testing.T, m meter.Meter, s meter.State, now int64) {
		if s.Count == 0 {
			return
		}
		until := m.Expires(&s)
		if until > now && m.Used(&s, until-1) == 0 {
			t.Fatalf("nothing counts one millisecond before %d: %+v", until, s)
		}
		var nothing meter.State
		if m.Look(&s, until) != m.Look(&nothing, until) || m.Used(&s, until) != 0 {
			t.Fatalf("it still counts at %d: %+v", until, s)
		}
		id := throttle.NewID()
		m.Take(&s, id, until)
		m.Take(&nothing, id, until)
		if !same(s, nothing) {
			t.Fatalf("what has expired left something behind\n%+v, want\n%+v", s, nothing)
		}
	})
}

func TestClonesShareNothing(t *testing.T) {
	lives(t, func(t *testing.T, m meter.Meter, s meter.State, now int64) {
		other, before := s.Clone(), s.Clone()
		m.Take(&other, throttle.NewID(), now)
		for _, send := range before.Held {
			m.Release(&other, send.ID, now)
		}
		if !same(s, before) {
			t.Fatalf("a clone's change turned\n%+v into\n%+v", before, s)
		}
	})
}

// While a no lasts, who asks is told by it what the state would say, up to its last
// millisecond; and from then on a send is admitted.
func TestARefusalSaysWhatTheStateWould(t *testing.T) {
	refused, told := 0, 0
	lives(t, func(t *testing.T, m meter.Meter, s meter.State, now int64) {
		said, _ := m.Take(&s, throttle.NewID(), now)
		if said.Allowed {
			return
		}
		refused++
		no := said.Refusal(s.IDs())
		for _, at := range []int64{no.Since, no.Since + 1, (no.Since + no.Until) / 2, no.Until - 1} {
			at = min(at, no.Until-1)
			want, _ := m.Take(&s, throttle.NewID(), at)
			if got := no.Reading(at); !no.Lasts(at) || got != want || got != m.Look(&s, at) {
				t.Fatalf("said at %d: %v\n at %d: %v, want %v", now, said, at, got, want)
			}
		}
		if no.Lasts(no.Since-1) || no.Lasts(no.Until) || !m.Look(&s, no.Until).Allowed {
			t.Fatalf("said at %d: %v, until %d, and then %v", now, said, no.Until, m.Look(&s, no.Until))
		}
		if no.IDs != throttle.AnyID {
			told++
			for range 3 {
				if id := throttle.NewID(); !no.IDs.MayHave(id) && !no.Holds(id, no.Since) {
					t.Fatalf("%s is not on record, and it is not known that it would be refused", id)
				}
			}
		}
		for _, a := range s.Held {
			if again, _ := m.Take(&s, a.ID, now); again.Allowed && no.Holds(a.ID, now) {
				t.Fatalf("%s is on record, and would be refused", a.ID)
			}
		}
	})
	if refused < 5*manyLives() || told < refused*9/10 {
		t.Errorf("%d refusals, %d of which tell the ids on record, are too few", refused, told)
	}
}
