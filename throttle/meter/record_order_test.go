package meter_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// every is sends at even distances, the first of them at a moment.
func every(distance int64, n int, first int64) (sends throttle.History) {
	for i := range n {
		sends = append(sends, throttle.Admission{ID: throttle.NewID(), At: first + int64(i)*distance})
	}
	return sends
}

// tell records sends at a moment, and says how many were counted.
func tell(m meter.Meter, s *meter.State, now int64, sends throttle.History) (counted int) {
	for _, a := range sends {
		if meter.Record(m, s, a, now) {
			counted++
		}
	}
	return counted
}

// merged is what several nodes have sent, in the order of time.
func merged(nodes ...throttle.History) throttle.History {
	all := slices.Concat(nodes...)
	slices.SortStableFunc(all, func(a, b throttle.Admission) int { return cmp.Compare(a.At, b.At) })
	return all
}

// Three nodes have gone on alone, and tell of it one after the other. It is as if they had
// told in turns.
func TestNodesThatTellOneAfterTheOther(t *testing.T) {
	const second, hour = 1000, 60 * minute
	burst := func(n int, at int64) throttle.History { return every(0, n, at) }
	for name, tt := range map[string]struct {
		m     meter.Meter
		nodes []throttle.History
		now   int64
		want  string
	}{
		"a queue that drains faster": {
			must(meter.NewLeakyBucket(tier(60, second), 200)),
			[]throttle.History{every(100, 120, start), every(100, 120, start+33), every(100, 120, start+66)},
			start + 12*second + 20, "201 left",
		},
		"a queue that drains slower": {
			must(meter.NewLeakyBucket(tier(60, minute), 200)),
			[]throttle.History{every(1000, 60, start), every(1000, 60, start+333), every(1000, 60, start+666)},
			start + minute, "81 left",
		},
		"tokens that are back": {
			must(meter.NewTokenBucket(tier(60, minute), 8)),
			[]throttle.History{burst(7, start), burst(7, start+10*second), burst(7, start+20*second)},
			start + 30*second, "8 left",
		},
		"tokens that are partly back": {
			must(meter.NewTokenBucket(tier(60, minute), 8)),
			[]throttle.History{burst(7, start+22*second), burst(7, start+26*second), every(5*second, 6, start)},
			start + 30*second, "4 left",
		},
		"more than are remembered": {
			must(meter.NewLeakyBucket(tier(60, second), 200)),
			[]throttle.History{every(100, 3000, start), every(100, 3000, start+33), every(100, 3000, start+66)},
			start + 300*second + 20, "201 left",
		},
		"more than are remembered, of a bucket that is never empty": {
			must(meter.NewTokenBucket(tier(10_000, hour), 0)),
			[]throttle.History{every(300, 2000, start), every(300, 2000, start+100), every(300, 2000, start+200)},
			start + 600*second, "5666 left",
		},
		"a window": {
			must(meter.NewSlidingWindow(tier(12, minute), 0)),
			[]throttle.History{every(10*second, 12, start), every(10*second, 12, start+5*second)},
			start + 2*minute + 30*second, "6 left",
		},
		"a window that is full": {
			must(meter.NewSlidingWindow(tier(100, 24*hour), 0)),
			[]throttle.History{every(6*minute, 60, start), every(6*minute, 60, start+2*minute), every(6*minute, 60, start+4*minute)},
			start + 6*hour, "wait 74879999",
		},
		"a window of the clock": {
			must(meter.NewFixedWindow(tier(12, minute))),
			[]throttle.History{every(10*second, 12, start), every(10*second, 12, start+5*second)},
			start + 2*minute - 1, "wait 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			says := func(nodes ...throttle.History) string {
				var s meter.State
				tell(tt.m, &s, tt.now, slices.Concat(nodes...))
				r := tt.m.Look(&s, tt.now)
				if r.Wait > 0 {
					return fmt.Sprint("wait ", r.Wait)
				}
				return fmt.Sprintf("%d left", r.Remaining)
			}
			inOrder := says(merged(tt.nodes...))
			slices.Reverse(tt.nodes)
			for range tt.nodes {
				if got := says(tt.nodes...); got != inOrder {
					t.Errorf("one after the other: %s, in order of time: %s", got, inOrder)
				}
				tt.nodes = append(tt.nodes[1:], tt.nodes[0])
			}
			if inOrder != tt.want {
				t.Errorf("%s, want %s", inOrder, tt.want)
			}
		})
	}
}

// aloneFor is what a node admits that goes on alone for a time.
func aloneFor(m meter.Meter, random *rand.Rand, until int64) (sends throttle.History) {
	var s meter.State
	now, pace := start+random.Int64N(minute), 1+random.Int64N(6)
	for now < until {
		a := throttle.Admission{ID: throttle.NewID(), At: now}
		if r, _ := m.Take(&s, a.ID, now); r.Allowed {
			sends = append(sends, a)
		}
		switch random.IntN(4) {
		case 0: // at once
		case 1:
			now += random.Int64N(2 + 4*pace*m.Tier().Window/int64(m.Tier().Limit))
		default:
			now += random.Int64N(2 + pace*m.Tier().Window/int64(m.Tier().Limit))
		}
	}
	return sends
}

// outages calls look at what nodes have admitted alone, by all ways to count.
func outages(t *testing.T, look func(t *testing.T, random *rand.Rand, m meter.Meter, nodes []throttle.History, now int64)) {
	for seed := range uint64(manyLives()) {
		random := rand.New(rand.NewPCG(seed, 9))
		m := randomMeter(random)
		t.Run(fmt.Sprintf("seed %d, %s", seed, m), func(t *testing.T) {
			until := start + minute + random.Int64N(1+40*m.Tier().Window/int64(m.Tier().Limit))
			var nodes []throttle.History
			for range 2 + random.IntN(3) {
				sends := aloneFor(m, random, until)
				nodes = append(nodes, sends[max(0, len(sends)-100):])
			}
			look(t, random, m, nodes, until+1001)
		})
	}
}

// emptyAt is when nothing counts any more.
func emptyAt(m meter.Meter, s *meter.State, now int64) int64 { return max(now, m.Expires(s)) }

func isBucket(m meter.Meter) bool {
	switch m.(type) {
	case meter.TokenBucket, meter.LeakyBucket:
		return true
	}
	return false
}

// oneSend is how long a bucket takes to drain one.
func oneSend(m meter.Meter) int64 { return m.Tier().Window/int64(m.Tier().Limit) + 1 }

// Whatever the order, the result is that of the order of time: of a window exactly, and of a
// bucket, too, where all found room in it, and else to less than one send.
func TestRecordInAnyOrder(t *testing.T) {
	full, exact := 0, 0
	outages(t, func(t *testing.T, random *rand.Rand, m meter.Meter, nodes []throttle.History, now int64) {
		all := merged(nodes...)
		var want meter.State
		counted := tell(m, &want, now, all)
		for range 5 {
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			var got meter.State
			shuffled := tell(m, &got, now, all)
			for later := now; later < now+2*m.Tier().Window; later += 1 + m.Tier().Window/17 {
				r, w := m.Look(&got, later), m.Look(&want, later)
				if r != w && (!isBucket(m) || counted == len(all) && shuffled == len(all)) {
					t.Fatalf("%d ms later %+v, in order of time %+v", later-now, r, w)
				}
			}
			if off := emptyAt(m, &got, now) - emptyAt(m, &want, now); isBucket(m) && max(off, -off) > oneSend(m) {
				t.Fatalf("it is empty %d ms later than in order of time, and one send takes %d", off, oneSend(m))
			}
			if isBucket(m) && counted < len(all) {
				full++
			} else if isBucket(m) {
				exact++
			}
		}
	})
	if few := manyLives() / 10; full < few || exact < few {
		t.Errorf("%d buckets were full and %d not, which are too few to tell", full, exact)
	}
}

// Where sends are admitted in between, a bucket may have forgotten that it was not empty. Then
// it has no more in it than in order of time, and no less than any node alone has left there:
// so that nodes admit no more than each its limit.
func TestRecordBetweenSends(t *testing.T) {
	less := 0
	outages(t, func(t *testing.T, random *rand.Rand, m meter.Meter, nodes []throttle.History, now int64) {
		if !isBucket(m) {
			return
		}
		all, alone := merged(nodes...), slices.Clone(nodes)
		var s meter.State
		for {
			nodes = slices.DeleteFunc(nodes, func(h throttle.History) bool { return len(h) == 0 })
			if len(nodes) == 0 {
				break
			}
			i := random.IntN(len(nodes))
			some := 1 + random.IntN(len(nodes[i]))
			tell(m, &s, now, nodes[i][:some])
			nodes[i] = nodes[i][some:]
			if random.IntN(2) == 0 {
				a := throttle.Admission{ID: throttle.NewID(), At: now}
				if r, _ := m.Take(&s, a.ID, now); r.Allowed {
					all = append(all, a)
				}
				now += random.Int64N(1 + m.Tier().Window/int64(m.Tier().Limit))
			}
		}
		var inOrder meter.State
		tell(m, &inOrder, now, all)
		got, most := emptyAt(m, &s, now), emptyAt(m, &inOrder, now)
		if got > most+oneSend(m) {
			t.Fatalf("it is empty %d ms later than in order of time, and one send takes %d", got-most, oneSend(m))
		}
		if got < most {
			less++
		}
		for _, sends := range alone {
			var one meter.State
			tell(m, &one, now, sends)
			if least := emptyAt(m, &one, now); got < least-oneSend(m) {
				t.Fatalf("it is empty %d ms earlier than after one node's, and one send takes %d", least-got, oneSend(m))
			}
		}
	})
	if less == 0 {
		t.Error("none has less in it than in order of time")
	}
}
