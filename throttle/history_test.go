package throttle_test

import (
	"slices"
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

func TestHistoryClock(t *testing.T) {
	tests := []struct {
		name        string
		sent        throttle.History
		now         int64
		newest, use int64
	}{
		{"no sends", nil, start, 0, start},
		{"after the newest", sends(0, 10), start + 11, start + 10, start + 11},
		{"at the newest", sends(0, 10), start + 10, start + 10, start + 10},
		{"before the newest", sends(0, 10), start + 9, start + 10, start + 10},
		{"before all", sends(0, 10), start - day, start + 10, start + 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.sent.Newest(); got != tt.newest {
				t.Errorf("newest %d, want %d", got, tt.newest)
			}
			if got := tt.sent.Clock(tt.now); got != tt.use {
				t.Errorf("clock %d, want %d", got, tt.use)
			}
		})
	}
}

func TestHistoryWithin(t *testing.T) {
	sent := sends(0, 10, 10, 20)
	tests := []struct {
		name   string
		window int64
		at     int64
		want   throttle.History
	}{
		{"all inside", 100, 20, sent},
		{"the oldest one millisecond before it leaves", 100, 99, sent},
		{"the oldest exactly as it leaves", 100, 100, sent[1:]},
		{"two of one millisecond leave together", 100, 110, sent[3:]},
		{"the last one millisecond before it leaves", 100, 119, sent[3:]},
		{"none inside", 100, 120, nil},
		{"a window of one millisecond", 1, 20, sent[3:]},
		{"under a clock that stepped back", 15, -day, sent[1:]},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := sent.Within(tt.window, start+tt.at); !slices.Equal(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
	if got := throttle.History(nil).Within(100, start); len(got) != 0 {
		t.Errorf("%v inside a window of a history without sends", got)
	}
}

func TestHistoryWith(t *testing.T) {
	tests := []struct {
		name   string
		policy string
		sent   throttle.History
		at     int64
		want   []int64 // after start
	}{
		{"the first", "minute=2/60s", nil, 0, []int64{0}},
		{"the next", "minute=2/60s", sends(0), minute - 1, []int64{0, minute - 1}},
		{"what has left the longest window is dropped", "minute=2/60s", sends(0), minute, []int64{minute}},
		{"what only a shorter window has lost is kept", "minute=1/60s,hour=2/1h", sends(0), minute, []int64{0, minute}},
		{"more than the limit is kept", "minute=1/60s", sends(0, 1, 2), 3, []int64{0, 1, 2, 3}},
		{"two in one millisecond", "minute=2/60s", sends(0), 0, []int64{0, 0}},
		{"under a clock that stepped back it joins the newest", "minute=2/60s", sends(0, 5), -day, []int64{0, 5, 5}},
		{"no tiers, nothing to remember but the send", "", sends(0), 1, []int64{1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := slices.Clone(tt.sent)
			id := throttle.NewID()
			next := tt.sent.With(policy(t, tt.policy), id, start+tt.at)
			var at []int64
			for _, a := range next {
				at = append(at, a.At-start)
			}
			if !slices.Equal(at, tt.want) {
				t.Errorf("sends at %v, want %v", at, tt.want)
			}
			if newest := next[len(next)-1]; newest.ID != id {
				t.Errorf("the newest is %s, want %s", newest.ID, id)
			}
			if !slices.Equal(tt.sent, before) {
				t.Errorf("the history it came from changed from %v to %v", before, tt.sent)
			}
		})
	}
}

func TestHistoryWithout(t *testing.T) {
	sent := sends(0, 10, 10, 20)
	tests := []struct {
		name  string
		id    throttle.ID
		want  throttle.History
		found bool
	}{
		{"the oldest", idOf(0), sent[1:], true},
		{"one of two in a millisecond", idOf(1), throttle.History{sent[0], sent[2], sent[3]}, true},
		{"the other of the two", idOf(2), throttle.History{sent[0], sent[1], sent[3]}, true},
		{"the newest", idOf(3), sent[:3], true},
		{"one that is not on record", idOf(4), sent, false},
		{"the zero id", throttle.ID{}, sent, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, found := sent.Without(tt.id)
			if !slices.Equal(got, tt.want) || found != tt.found {
				t.Errorf("%v, %v; want %v, %v", got, found, tt.want, tt.found)
			}
			if again, found := got.Without(tt.id); found || !slices.Equal(again, got) {
				t.Errorf("given back a second time: %v, %v", again, found)
			}
			if (sent.Find(tt.id) >= 0) != tt.found || got.Find(tt.id) >= 0 {
				t.Errorf("find before and after: %d and %d", sent.Find(tt.id), got.Find(tt.id))
			}
			if !slices.Equal(sent, sends(0, 10, 10, 20)) {
				t.Errorf("the history it came from changed to %v", sent)
			}
		})
	}
}

// Histories that were handed out stay as they are, also when two are made from one.
func TestHistoriesAreValues(t *testing.T) {
	p := policy(t, "hour=9/1h")
	base := sends(0, 1, 2)
	first, second := base.With(p, idOf(10), start+3), base.With(p, idOf(11), start+4)
	without, _ := first.Without(idOf(0))
	_ = without.With(p, idOf(12), start+5)
	if first[3].ID != idOf(10) || first[0].ID != idOf(0) || second[3].ID != idOf(11) {
		t.Errorf("histories share what they write to: %v and %v", first, second)
	}
}

func TestHistoryIncluding(t *testing.T) {
	p := policy(t, "minute=2/60s,hour=5/1h")
	hour := int64(3_600_000)
	sent := sends(0, 10, 20)
	tests := []struct {
		name     string
		id       throttle.ID
		at, now  int64 // since the start
		want     []int64
		included bool
	}{
		{"before all", idOf(9), -5, 20, []int64{-5, 0, 10, 20}, true},
		{"between", idOf(9), 15, 20, []int64{0, 10, 15, 20}, true},
		{"behind one of its millisecond", idOf(9), 10, 20, []int64{0, 10, 10, 20}, true},
		{"behind all", idOf(9), 25, 30, []int64{0, 10, 20, 25}, true},
		{"ahead of the clock", idOf(9), 99, 30, []int64{0, 10, 20, 30}, true},
		{"ahead of a clock that stepped back", idOf(9), 99, -30, []int64{0, 10, 20, 20}, true},
		{"just inside the longest window", idOf(9), 20 - hour + 1, 20, []int64{20 - hour + 1, 0, 10, 20}, true},
		{"just outside", idOf(9), 20 - hour, 20, []int64{0, 10, 20}, false},
		{"before all time", idOf(9), -1 << 63, 20, []int64{0, 10, 20}, false},
		{"on record, at another time", idOf(0), 15, 20, []int64{0, 10, 20}, false},
		{"on record, but it has left", idOf(0), 15, hour, []int64{10, 15, 20}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, included := sent.Including(p, throttle.Admission{ID: tt.id, At: start + tt.at}, start+tt.now)
			var at []int64
			for _, a := range got {
				at = append(at, a.At-start)
			}
			if !slices.Equal(at, tt.want) || included != tt.included || included != (got.Find(tt.id) >= 0 && !slices.Equal(got, sent)) {
				t.Errorf("%v, %v; want %v, %v", at, included, tt.want, tt.included)
			}
			if !slices.Equal(sent, sends(0, 10, 20)) {
				t.Errorf("the history it came from changed to %v", sent)
			}
		})
	}
}

// Of more sends than any tier counts the newest are kept: one that is older than all of them
// changes nothing.
func TestHistoryIncludingInAFullOne(t *testing.T) {
	p := policy(t, "hour=1000/1h")
	var full throttle.History
	for i := range throttle.MaxLimit {
		full = append(full, throttle.Admission{ID: idOf(i), At: start + int64(i)})
	}
	one := idOf(throttle.MaxLimit)
	for after, want := range map[int64]struct {
		oldest   throttle.ID
		included bool
	}{-1: {idOf(0), false}, 0: {one, true}, 1: {idOf(1), true}} {
		got, included := full.Including(p, throttle.Admission{ID: one, At: start + after}, start+minute)
		if included != want.included || len(got) != throttle.MaxLimit || got[0].ID != want.oldest {
			t.Errorf("at %d: %v, %d from %s", after, included, len(got), got[0].ID)
		}
	}
}
