package meter_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// start is the first moment of a day, and of any window that a table uses.
const start = int64(1_800_057_600_000)

// A step is one question, so many milliseconds after start, such as "take a", "look",
// "release a" or "used".
type step struct {
	at   int64
	ask  string
	want string
}

func idOf(name string) (id throttle.ID) {
	copy(id[:], name+"-------")
	return id
}

// walk asks one state after the other question.
func walk(t *testing.T, m meter.Meter, steps []step) {
	t.Helper()
	var s meter.State
	for i, step := range steps {
		if got := ask(m, &s, step.ask, start+step.at); got != step.want {
			t.Fatalf("%s: step %d, %s at %d:\n got %s\nwant %s", m, i, step.ask, step.at, got, step.want)
		}
	}
}

func ask(m meter.Meter, s *meter.State, question string, now int64) string {
	what, name, _ := strings.Cut(question, " ")
	switch what {
	case "take":
		v, changed := m.Take(s, idOf(name), now)
		if v.Allowed && !changed {
			return spell(v) + ", on record"
		}
		return spell(v)
	case "count":
		return spell(m.Count(s, now))
	case "look":
		return spell(m.Look(s, now))
	case "release":
		return fmt.Sprint(m.Release(s, idOf(name), now))
	}
	return fmt.Sprint(m.Used(s, now))
}

// spell writes a reading as "yes, 2 left", "yes, 0 left for 900" or "no, 0 left for 900";
// a delay comes after "in".
func spell(v meter.Reading) string {
	text := "no"
	if v.Allowed {
		text = "yes"
	}
	if v.Delay != 0 {
		text += fmt.Sprint(" in ", v.Delay)
	}
	text += fmt.Sprintf(", %d left", v.Remaining)
	if v.Wait > 0 {
		text += fmt.Sprint(" for ", v.Wait)
	}
	return text
}

func tier(limit int, window int64) throttle.Tier {
	return throttle.Tier{Name: "some", Limit: limit, Window: window}
}

// must is for numbers that a test knows to be right.
func must[M meter.Meter](m M, err error) meter.Meter {
	if err != nil {
		panic(err)
	}
	return m
}

func TestFixedWindowStepByStep(t *testing.T) {
	walk(t, must(meter.NewFixedWindow(tier(2, 1000))), []step{
		{300, "look", "yes, 2 left"},
		{300, "take a", "yes, 1 left"},
		{900, "take b", "yes, 0 left for 100"},
		{900, "take c", "no, 0 left for 100"},
		{999, "take c", "no, 0 left for 1"},
		{999, "take a", "yes, 0 left for 1, on record"},
		{999, "used", "2"},
		{1000, "used", "0"},
		{1000, "take c", "yes, 1 left"}, // four in 700 ms: the edge lets them
		{1000, "take d", "yes, 0 left for 1000"},
		{1000, "release a", "false"},
		{999, "take e", "no, 0 left for 1000"}, // the clock counts as the window's beginning
		{1500, "release c", "true"},
		{1500, "release c", "false"},
		{1500, "take e", "yes, 0 left for 500"},
		{1600, "release d", "true"},
		{1600, "release e", "true"},
		{1600, "used", "0"},
		{900, "take f", "yes, 1 left"}, // nothing is on record, so no clock either
		{999, "used", "1"},
		{7000, "take f", "yes, 1 left"},
	})
}

func TestSlidingWindowStepByStep(t *testing.T) {
	walk(t, must(meter.NewSlidingWindow(tier(2, 1000), 10)), []step{
		{310, "look", "yes, 2 left"},
		{310, "take a", "yes, 1 left"},
		{950, "take b", "yes, 0 left for 449"}, // a goes with the part from 300 to 399
		{1000, "take c", "no, 0 left for 399"},
		{1310, "take c", "no, 0 left for 89"}, // a window after a, which weighs 89 ms more
		{1398, "take c", "no, 0 left for 1"},
		{1398, "take a", "yes, 0 left for 1, on record"},
		{1399, "used", "1"},
		{1399, "release a", "false"},
		{1399, "take c", "yes, 0 left for 600"},
		{1100, "take d", "no, 0 left for 699"}, // the clock counts as 1300, where the newest part begins
		{1998, "take d", "no, 0 left for 1"},
		{1999, "release c", "true"},
		{1999, "release c", "false"},
		{1999, "used", "0"},
		{1999, "take d", "yes, 1 left"},
		{2050, "take e", "yes, 0 left for 949"},
		{2050, "release d", "true"},
		{2050, "take f", "yes, 0 left for 1049"},
		{2050, "release e", "true"},
		{2050, "release f", "true"},
		{500, "take g", "yes, 1 left"},
		{5000, "used", "0"},
	})
}

func TestSlidingWindowIsExactInPartsOfAMillisecond(t *testing.T) {
	walk(t, must(meter.NewSlidingWindow(tier(1, 10), 10)), []step{
		{3, "take a", "yes, 0 left for 10"},
		{12, "take b", "no, 0 left for 1"},
		{13, "take b", "yes, 0 left for 10"},
	})
}

func TestTokenBucketStepByStep(t *testing.T) {
	// A token comes back in 333 1/3 ms.
	walk(t, must(meter.NewTokenBucket(tier(3, 1000), 2)), []step{
		{0, "look", "yes, 2 left"},
		{0, "take a", "yes, 1 left"},
		{0, "take b", "yes, 0 left for 334"},
		{0, "take c", "no, 0 left for 334"},
		{333, "take c", "no, 0 left for 1"},
		{334, "look", "yes, 1 left"},
		{334, "take c", "yes, 0 left for 333"},
		{334, "take b", "yes, 0 left for 333, on record"},
		{334, "take a", "no, 0 left for 333"}, // two are remembered, as many as there are tokens
		{200, "take d", "no, 0 left for 333"},
		{334, "used", "2"},
		{400, "used", "2"},
		{667, "used", "1"},
		{667, "release b", "true"},
		{667, "release b", "false"},
		{667, "used", "1"},
		{668, "used", "0"}, // c alone would have been back by 667 1/3
		{668, "release c", "false"},
		{668, "take c", "yes, 1 left"}, // what has drained is not on record any more
		{668, "release c", "true"},
		{668, "take d", "yes, 1 left"},
		{668, "release d", "true"},
		{668, "release d", "false"},
		{668, "look", "yes, 2 left"},
	})
}

// What is forgotten of a bucket that is never empty goes on to drain.
func TestTokenBucketReleaseAfterForgetting(t *testing.T) {
	walk(t, must(meter.NewTokenBucket(tier(1, 1000), 2)), []step{
		{0, "take a", "yes, 1 left"},
		{500, "take b", "yes, 0 left for 500"},
		{1000, "take c", "yes, 0 left for 1000"}, // two are remembered: a is forgotten
		{2400, "take d", "yes, 0 left for 600"},  // and b
		{2400, "release c", "true"},              // without it the bucket was empty since 2000
		{2400, "take e", "yes, 0 left for 1000"},
	})
}

// One that is given back is given back for all the time since.
func TestTokenBucketReleaseLookBack(t *testing.T) {
	walk(t, must(meter.NewTokenBucket(tier(1, 1000), 3)), []step{
		{0, "take a", "yes, 2 left"},
		{500, "take b", "yes, 1 left"},
		{1900, "take c", "yes, 1 left"},
		{1900, "used", "2"},
		{1900, "release b", "true"},
		{1900, "used", "1"},
		{1900, "release a", "false"}, // without b the bucket was empty in between
		{1900, "release c", "true"},
		{0, "take d", "yes, 2 left"},
	})
}

func TestLeakyBucketStepByStep(t *testing.T) {
	// One leaves each 333 1/3 ms; two may wait.
	walk(t, must(meter.NewLeakyBucket(tier(3, 1000), 2)), []step{
		{0, "look", "yes, 3 left"},
		{0, "take a", "yes, 2 left"},
		{0, "look", "yes in 334, 2 left"},
		{0, "take b", "yes in 334, 1 left"},
		{0, "take c", "yes in 667, 0 left for 334"},
		{0, "take d", "no, 0 left for 334"},
		{100, "take c", "yes in 567, 0 left for 234, on record"},
		{333, "take d", "no, 0 left for 1"},
		{334, "take d", "yes in 666, 0 left for 333"},
		{334, "release d", "true"},
		{334, "release d", "false"},
		{334, "take e", "yes in 666, 0 left for 333"},
		{-1000, "take e", "yes in 666, 0 left for 333, on record"}, // its turn does not move
		{-1000, "take f", "no, 0 left for 333"},
		{1200, "used", "1"},
		{1200, "take e", "yes, 2 left, on record"},
		{1334, "used", "0"},
		{1334, "take f", "yes, 2 left"},
	})
}

func TestLeakyBucketWithoutQueue(t *testing.T) {
	walk(t, must(meter.NewLeakyBucket(tier(3, 1000), 0)), []step{
		{0, "take a", "yes, 0 left for 334"},
		{333, "take b", "no, 0 left for 1"},
		{334, "take b", "yes, 0 left for 334"},
	})
}

// A queue whose rate was changed tells a newcomer what is ahead of it at the new rate.
func TestLeakyBucketAtAnotherRate(t *testing.T) {
	var s meter.State
	slow, fast := must(meter.NewLeakyBucket(tier(2, 1000), 5)), must(meter.NewLeakyBucket(tier(4, 1000), 5))
	fast.Take(&s, idOf("a"), 0)
	fast.Take(&s, idOf("b"), 100) // 600 parts of a and the 1000 of b
	if v, _ := slow.Take(&s, idOf("c"), 100); !v.Allowed || v.Delay != 800 {
		t.Errorf("allowed %v, in %d ms, want 800", v.Allowed, v.Delay)
	}
}

// A limit is changed, and the state goes on to count.
func TestChangedLimits(t *testing.T) {
	tests := []struct {
		before, after meter.Meter
		looks         string
	}{
		{must(meter.NewFixedWindow(tier(4, 1000))), must(meter.NewFixedWindow(tier(2, 1000))), "no, 0 left for 900"},
		{must(meter.NewFixedWindow(tier(4, 1000))), must(meter.NewFixedWindow(tier(9, 1000))), "yes, 5 left"},
		{must(meter.NewSlidingWindow(tier(4, 1000), 10)), must(meter.NewSlidingWindow(tier(2, 1000), 10)), "no, 0 left for 1099"},
		{must(meter.NewSlidingWindow(tier(4, 1000), 10)), must(meter.NewSlidingWindow(tier(9, 1000), 10)), "yes, 5 left"},
		{must(meter.NewTokenBucket(tier(4, 1000), 0)), must(meter.NewTokenBucket(tier(4, 1000), 2)), "no, 0 left for 750"},
		{must(meter.NewTokenBucket(tier(4, 1000), 0)), must(meter.NewTokenBucket(tier(2, 1000), 9)), "yes, 5 left"},
		{must(meter.NewLeakyBucket(tier(4, 1000), 3)), must(meter.NewLeakyBucket(tier(4, 1000), 1)), "no, 0 left for 750"},
		{must(meter.NewLeakyBucket(tier(4, 1000), 3)), must(meter.NewLeakyBucket(tier(4, 1000), 8)), "yes in 1000, 5 left"},
	}
	for _, tt := range tests {
		if tt.before.Form() != tt.after.Form() {
			t.Fatalf("%s is %s, %s is %s", tt.before, tt.before.Form(), tt.after, tt.after.Form())
		}
		var s meter.State
		for _, name := range []string{"a", "b", "c", "d"} {
			if v, _ := tt.before.Take(&s, idOf(name), start+100); !v.Allowed {
				t.Fatalf("%s: %s is denied", tt.before, name)
			}
		}
		if got := spell(tt.after.Look(&s, start+100)); got != tt.looks {
			t.Errorf("%s after four by %s: %s, want %s", tt.after, tt.before, got, tt.looks)
		}
		if !tt.after.Release(&s, idOf("d"), start+100) || tt.after.Used(&s, start+100) != 3 {
			t.Errorf("%s after four by %s: the last is not given back", tt.after, tt.before)
		}
	}
}
