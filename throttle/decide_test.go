package throttle_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

// start is an ordinary moment; tables count from it.
const start = int64(1_800_000_000_000)

const (
	second = int64(1000)
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
)

const usual = "minute=1/60s,hour=5/1h,day=10/24h"

func policy(t testing.TB, text string) throttle.Policy {
	t.Helper()
	if text == "" {
		return throttle.Policy{}
	}
	p, err := throttle.ParsePolicy(text)
	if err != nil {
		t.Fatalf("policy %s: %v", text, err)
	}
	return p
}

// sends is a history of admissions so many milliseconds after start.
func sends(after ...int64) throttle.History {
	var h throttle.History
	for i, ms := range after {
		h = append(h, throttle.Admission{ID: idOf(i), At: start + ms})
	}
	return h
}

func idOf(i int) (id throttle.ID) {
	copy(id[:], fmt.Sprintf("send%04d", i))
	return id
}

// spell writes a verdict as "yes minute 60000 [minute 0 60000] [hour 4 0]".
func spell(v throttle.Verdict) string {
	text := "no"
	if v.Allowed {
		text = "yes"
	}
	text += fmt.Sprintf(" %s %d", v.Limit, v.Wait)
	for _, tier := range v.Tiers() {
		text += fmt.Sprintf(" [%s %d %d]", tier.Name, tier.Remaining, tier.Wait)
	}
	return text
}

func TestDecide(t *testing.T) {
	tests := []struct {
		name   string
		policy string
		sent   throttle.History
		at     int64 // after start
		want   string
	}{
		{"nothing sent", usual, nil, 0, "yes  0 [minute 1 0] [hour 5 0] [day 10 0]"},
		{"in the millisecond of a send", usual, sends(0), 0, "no minute 60000 [minute 0 60000] [hour 4 0] [day 9 0]"},
		{"one millisecond before the window ends", usual, sends(0), minute - 1, "no minute 1 [minute 0 1] [hour 4 0] [day 9 0]"},
		{"exactly one window later", usual, sends(0), minute, "yes  0 [minute 1 0] [hour 4 0] [day 9 0]"},
		{"one millisecond before the longest window ends", usual, sends(0), day - 1, "yes  0 [minute 1 0] [hour 5 0] [day 9 0]"},
		{"when the longest window ends", usual, sends(0), day, "yes  0 [minute 1 0] [hour 5 0] [day 10 0]"},

		{"the hour is full", usual, sends(0, minute, 2*minute, 3*minute, 4*minute), 5 * minute,
			"no hour 3300000 [minute 1 0] [hour 0 3300000] [day 5 0]"},
		{"two tiers are full, the longer one for longer", usual, sends(0, minute, 2*minute, 3*minute, 4*minute), 4*minute + 1,
			"no hour 3359999 [minute 0 59999] [hour 0 3359999] [day 5 0]"},
		{"two tiers are full, the shorter one for longer", usual, sends(0, minute, 2*minute, 3*minute, hour-second), hour - 1,
			"no minute 59001 [minute 0 59001] [hour 0 1] [day 5 0]"},
		{"the day is full", usual, sends(0, hour, 2*hour, 3*hour, 4*hour, 5*hour, 6*hour, 7*hour, 8*hour, 9*hour), 10 * hour,
			"no day 50400000 [minute 1 0] [hour 5 0] [day 0 50400000]"},
		{"the day frees up with its oldest send", usual, sends(0, hour, 2*hour, 3*hour, 4*hour, 5*hour, 6*hour, 7*hour, 8*hour, 9*hour), day,
			"yes  0 [minute 1 0] [hour 5 0] [day 1 0]"},

		{"a tie goes to the longer window", "short=1/1s,long=2/4s", sends(0, 3*second), 3 * second,
			"no long 1000 [short 0 1000] [long 0 1000]"},
		{"whatever order the tiers were written in", "long=2/4s,short=1/1s", sends(0, 3*second), 3 * second,
			"no long 1000 [short 0 1000] [long 0 1000]"},
		{"a tie of three goes to the longest", "a=1/1s,b=2/2s,c=3/3s", sends(0, second, 2*second), 2 * second,
			"no c 1000 [a 0 1000] [b 0 1000] [c 0 1000]"},
		{"one millisecond off a tie, the shorter wins", "short=1/1s,long=2/4s", sends(0, 3*second+1), 3*second + 1,
			"no short 1000 [short 0 1000] [long 0 999]"},

		{"a history longer than the limit of 1", "minute=1/60s", sends(0, 10*second, 20*second), 20 * second,
			"no minute 60000 [minute 0 60000]"},
		{"a history longer than the limit of 2", "minute=2/60s", sends(0, 10*second, 20*second, 30*second), 30 * second,
			"no minute 50000 [minute 0 50000]"},
		{"which frees up when the second newest leaves", "minute=2/60s", sends(0, 10*second, 20*second, 30*second), 80 * second,
			"yes  0 [minute 1 0]"},
		{"several sends in one millisecond", "minute=3/60s", sends(0, 0, 0), 0, "no minute 60000 [minute 0 60000]"},
		{"a window of one millisecond", "now=1/1ms", sends(0), 0, "no now 1 [now 0 1]"},
		{"a window of one millisecond, over", "now=1/1ms", sends(0), 1, "yes  0 [now 1 0]"},
		{"the longest window there is", "decade=1/87840h", sends(0), throttle.MaxWindow - 1, "no decade 1 [decade 0 1]"},

		{"the clock one millisecond back", usual, sends(0), -1, "no minute 60000 [minute 0 60000] [hour 4 0] [day 9 0]"},
		{"the clock a day back", "minute=2/60s,hour=4/1h", sends(0, 30*second), -day, "no minute 30000 [minute 0 30000] [hour 2 0]"},
		{"the clock back reopens no window and closes none", "minute=2/60s", sends(0, minute), 0, "yes  0 [minute 1 0]"},
		{"the clock at zero", usual, sends(0), -start, "no minute 60000 [minute 0 60000] [hour 4 0] [day 9 0]"},
		{"a clock at zero and nothing sent", usual, nil, -start, "yes  0 [minute 1 0] [hour 5 0] [day 10 0]"},

		{"no tiers", "", sends(0, 0, 0), 0, "yes  0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := throttle.Decide(policy(t, tt.policy), tt.sent, start+tt.at)
			if got := spell(v); got != tt.want {
				t.Errorf("verdict\n got %s\nwant %s", got, tt.want)
			}
			if v.Now != start+tt.at {
				t.Errorf("now is %d, want the clock as it was handed in, %d", v.Now, start+tt.at)
			}
			want := v.Now
			if v.Wait > 0 {
				want = tt.sent.Clock(v.Now) + v.Wait
			}
			if v.RetryAt() != want {
				t.Errorf("retry at %d, want %d", v.RetryAt(), want)
			}
		})
	}
}

// Admitted differs from Decide in nothing but the yes.
func TestAdmitted(t *testing.T) {
	tests := []struct {
		name   string
		policy string
		sent   throttle.History
		at     int64
		want   string
	}{
		{"the first send", usual, sends(0), 0, "yes minute 60000 [minute 0 60000] [hour 4 0] [day 9 0]"},
		{"asked again later", usual, sends(0), second, "yes minute 59000 [minute 0 59000] [hour 4 0] [day 9 0]"},
		{"the send that fills the hour", usual, sends(0, minute, 2*minute, 3*minute, 4*minute), 4 * minute,
			"yes hour 3360000 [minute 0 60000] [hour 0 3360000] [day 5 0]"},
		{"a send that leaves room", "minute=2/60s", sends(0), 0, "yes  0 [minute 1 0]"},
		{"under a clock that stepped back", usual, sends(0), -second, "yes minute 60000 [minute 0 60000] [hour 4 0] [day 9 0]"},
		{"no tiers", "", sends(0), 0, "yes  0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := spell(throttle.Admitted(policy(t, tt.policy), tt.sent, start+tt.at)); got != tt.want {
				t.Errorf("verdict\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

// A mailbox's life, step by step: each yes is recorded, as a limiter would.
func TestDecideStepByStep(t *testing.T) {
	p := policy(t, "minute=1/60s,hour=3/1h")
	steps := []struct {
		at   int64
		want string
	}{
		{0, "yes minute 60000 [minute 0 60000] [hour 2 0]"},
		{0, "no minute 60000 [minute 0 60000] [hour 2 0]"},
		{59_999, "no minute 1 [minute 0 1] [hour 2 0]"},
		{60_000, "yes minute 60000 [minute 0 60000] [hour 1 0]"},
		{120_000, "yes hour 3480000 [minute 0 60000] [hour 0 3480000]"},
		{180_000, "no hour 3420000 [minute 1 0] [hour 0 3420000]"},
		{3_599_999, "no hour 1 [minute 1 0] [hour 0 1]"},
		{3_600_000, "yes hour 60000 [minute 0 60000] [hour 0 60000]"},
		{3_659_999, "no hour 1 [minute 0 1] [hour 0 1]"},
		{3_660_000, "yes hour 60000 [minute 0 60000] [hour 0 60000]"},
		{10_000_000, "yes minute 60000 [minute 0 60000] [hour 2 0]"},
	}
	var h throttle.History
	for i, step := range steps {
		now := start + step.at
		v := throttle.Decide(p, h, now)
		if v.Allowed {
			h = h.With(p, idOf(i), now)
			v = throttle.Admitted(p, h, now)
		}
		if got := spell(v); got != step.want {
			t.Fatalf("step %d, %d ms after the start\n got %s\nwant %s", i, step.at, got, step.want)
		}
	}
}

// Random histories against the rule's own words: allowed is when every tier counts
// fewer sends inside its window than its limit, and the wait is the first moment from
// now on of which that is true.
func TestDecideKeepsItsWord(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	for range 20_000 {
		p, h, now := randomQuestion(t, random)
		v := throttle.Decide(p, h, now)
		if want := within(p, h, now); v.Allowed != want || (v.Wait == 0) != want || (v.Limit == "") != want {
			t.Fatalf("%s %v at %d: %s, want allowed %v", p, h, now, spell(v), want)
		}
		if !v.Allowed && within(p, h, v.RetryAt()-1) {
			t.Fatalf("%s %v at %d: %s, but it is allowed one millisecond earlier", p, h, now, spell(v))
		}
		if !within(p, h, v.RetryAt()) {
			t.Fatalf("%s %v at %d: %s, but it is not allowed then", p, h, now, spell(v))
		}
		for _, tier := range v.Tiers() {
			one := policy(t, tier.Tier.String())
			if tier.Remaining != max(0, tier.Limit-count(h, tier.Window, now)) || (tier.Remaining == 0) == within(one, h, now) {
				t.Fatalf("%s %v at %d: %s, tier %s counts %d", p, h, now, spell(v), tier.Name, count(h, tier.Window, now))
			}
			if tier.Wait > 0 && within(one, h, now+tier.Wait-1) || !within(one, h, now+tier.Wait) {
				t.Fatalf("%s %v at %d: %s, the wait of %s is not exact", p, h, now, spell(v), tier.Name)
			}
		}
	}
}

// randomQuestion is a small policy, a history with crowds and ties, and a moment that
// is not before its newest send.
func randomQuestion(t *testing.T, random *rand.Rand) (throttle.Policy, throttle.History, int64) {
	var tiers []throttle.Tier
	limit, window := 0, int64(0)
	for i := range 1 + random.IntN(4) {
		limit += random.IntN(3)
		window += 1 + random.Int64N(40)
		tiers = append(tiers, throttle.Tier{Name: fmt.Sprint("t", i), Limit: max(1, limit), Window: window})
	}
	p, err := throttle.NewPolicy(tiers...)
	if err != nil {
		t.Fatal(err)
	}
	var at []int64
	for last, i := int64(0), 0; i < random.IntN(9); i++ {
		last += random.Int64N(20)
		at = append(at, last)
	}
	h := sends(at...)
	return p, h, max(start, h.Newest()) + random.Int64N(window+5)
}

func within(p throttle.Policy, h throttle.History, now int64) bool {
	for _, tier := range p.Tiers() {
		if count(h, tier.Window, now) >= tier.Limit {
			return false
		}
	}
	return true
}

func count(h throttle.History, window, now int64) (n int) {
	for _, a := range h {
		if now-a.At < window {
			n++
		}
	}
	return n
}

func TestDecideAllocatesNothing(t *testing.T) {
	p, standings := throttle.DefaultPolicy(), make([]throttle.Standing, 0, 3)
	histories := []throttle.History{nil, sends(0), sends(0, 1, 2, 3, 4, 5, 6, 7, 8, 9)}
	allocs := testing.AllocsPerRun(100, func() {
		for _, h := range histories {
			v := throttle.Decide(p, h, start+10)
			standings = v.AppendTiers(standings[:0])
			standings = throttle.Admitted(p, h, start+10).AppendTiers(standings[:0])
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
}
