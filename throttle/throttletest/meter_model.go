package throttletest

import (
	"fmt"
	"slices"

	"github.com/mailgate/mailgate/throttle"
)

// A naive counts by a plain list of all sends, and works everything out anew from it at
// each question. It shares no code with package meter. What it knows of forgetting is
// what meters promise: recording a send drops those that count no more, and only the
// newest so many can be repeated or given back.
type naive struct {
	way   way
	most  int    // sends that can be repeated or given back
	sends []send // in the order of their times
	open  bool   // of a bucket: it drops nothing, as some were recorded late
}

// A send is one admission on the list.
type send struct {
	id     throttle.ID
	at     int64
	known  bool // remembered: it can be repeated and given back, if it has an id
	vacant bool // was given back, and keeps its place
}

// A way is how one algorithm reads the list, in its documentation's words.
type way interface {
	// clock is the moment that counts, for a list that ends with newest.
	clock(newest, now int64) int64
	// counting is those of the list that count at clock.
	counting(sends []send, clock int64) []send
	// standing is how the limit stands with these: another has to wait or need not.
	standing(counting []send, clock int64) throttle.Standing
	// used is how many these are, a part of one being one.
	used(counting []send, clock int64) int
	// turn is when the i-th of these leaves; one past the last is the next to come.
	turn(counting []send, i int, clock int64) int64
	// keepsPlaces is whether one that is given back keeps its place while one behind it
	// does not.
	keepsPlaces() bool
	// remembered are those of which one can be repeated or given back at clock.
	remembered(sends []send, clock int64) []send
	// kept are those that stay on the list with another at clock.
	kept(n *naive, id throttle.ID, clock int64) []send
	// record puts one on the list that was admitted elsewhere at a moment before clock.
	record(n *naive, s send, clock int64)
}

// An answer is all that a verdict says.
type answer struct {
	allowed      bool
	limit        string
	wait, delay  int64
	now, retryAt int64
	tiers        int
	standing     throttle.Standing
}

func answerOf(v throttle.Verdict) answer {
	a := answer{allowed: v.Allowed, limit: v.Limit, wait: v.Wait, delay: v.Delay, now: v.Now, retryAt: v.RetryAt()}
	for _, standing := range v.Tiers() {
		a.tiers, a.standing = a.tiers+1, standing
	}
	return a
}

func (a answer) String() string {
	text := "no"
	if a.allowed {
		text = "yes"
	}
	return fmt.Sprintf("%s %s %d, delay %d, at %d until %d [%v %d of %d, %d]", text, a.limit, a.wait, a.delay,
		a.now, a.retryAt, a.standing.Tier, a.standing.Remaining, a.standing.Limit, a.standing.Wait)
}

func (n *naive) clock(now int64) int64 {
	if len(n.sends) == 0 {
		return now
	}
	return n.way.clock(n.newest(), now)
}

func (n *naive) counting(now int64) []send { return n.way.counting(n.sends, n.clock(now)) }

func (n *naive) answer(allowed bool, now, turn int64) answer {
	clock := n.clock(now)
	s := n.way.standing(n.counting(now), clock)
	a := answer{allowed: allowed, wait: s.Wait, now: now, retryAt: now, tiers: 1, standing: s}
	if s.Wait > 0 {
		a.limit, a.retryAt = s.Name, clock+s.Wait
	}
	if allowed && turn > clock {
		a.delay = turn - clock
	}
	return a
}

func (n *naive) peek(now int64) answer {
	counting := n.counting(now)
	free := n.way.standing(counting, n.clock(now)).Wait == 0
	return n.answer(free, now, n.way.turn(counting, len(counting), n.clock(now)))
}

func (n *naive) take(now int64, id throttle.ID) answer {
	counting, clock := n.counting(now), n.clock(now)
	if remembered := n.way.remembered(n.sends, clock); find(remembered, id) >= 0 {
		turn := clock // of one that has left
		if i := find(counting, id); i >= 0 {
			turn = n.way.turn(counting, i, clock)
		}
		return n.answer(true, now, turn)
	}
	return n.admit(now, send{id: id, known: true})
}

// count is take of a send without an id. A bucket remembers when it came where it remembers
// one before it.
func (n *naive) count(now int64) answer {
	_, bucket := n.way.(inBucket)
	behind := slices.ContainsFunc(n.counting(now), func(s send) bool { return s.known })
	return n.admit(now, send{known: bucket && behind})
}

// admit puts one more on the list, unless the limit is met.
func (n *naive) admit(now int64, s send) answer {
	counting, clock := n.counting(now), n.clock(now)
	if n.way.standing(counting, clock).Wait > 0 {
		return n.answer(false, now, 0)
	}
	turn := n.way.turn(counting, len(counting), clock)
	s.at = clock
	n.sends = append(slices.Clip(n.way.kept(n, s.id, clock)), s)
	n.forget()
	return n.answer(true, now, turn)
}

// newest is when the last on the list came.
func (n *naive) newest() int64 {
	if len(n.sends) == 0 {
		return 0
	}
	return n.sends[len(n.sends)-1].at
}

// insert puts one on the list in its place in time, and says which that is.
func (n *naive) insert(s send) (place int) {
	place = len(n.sends)
	for place > 0 && n.sends[place-1].at > s.at {
		place--
	}
	n.sends = slices.Insert(slices.Clone(n.sends), place, s)
	return place
}

// forget is that only the newest so many are known.
func (n *naive) forget() {
	known := 0
	for i := len(n.sends) - 1; i >= 0; i-- {
		if n.sends[i].known {
			known++
			n.sends[i].known = known <= n.most
		}
		n.open = n.open && n.sends[i].known
	}
}

func (n *naive) release(now int64, id throttle.ID) bool {
	if find(n.way.remembered(n.sends, n.clock(now)), id) < 0 {
		return false
	}
	i := find(n.sends, id)
	n.sends[i].vacant = true
	if n.way.keepsPlaces() && i < len(n.sends)-1 {
		return true
	}
	n.open = false
	if !n.way.keepsPlaces() {
		n.sends = append(n.sends[:i:i], n.sends[i+1:]...)
	}
	last := len(n.sends) - 1
	for last >= 0 && n.sends[last].vacant && n.sends[last].known {
		last--
	}
	if n.sends = n.sends[:last+1]; last >= 0 {
		n.sends = n.way.counting(n.sends, n.way.clock(n.sends[last].at, 0))
	}
	return true
}

func (n *naive) reset(now int64) int {
	used := n.way.used(n.counting(now), n.clock(now))
	n.sends, n.open = nil, false
	return used
}

func find(sends []send, id throttle.ID) int {
	for i, s := range sends {
		if s.id == id && s.id != (throttle.ID{}) && s.known && !s.vacant {
			return i
		}
	}
	return -1
}
