package throttletest

import "github.com/mailgate/mailgate/throttle"

// atOnce is of the ways that let nothing queue.
type atOnce struct{}

func (atOnce) turn([]send, int, int64) int64 { return 0 }
func (atOnce) keepsPlaces() bool             { return false }

func (w inFixedWindows) remembered(sends []send, clock int64) []send { return w.counting(sends, clock) }
func (w inParts) remembered(sends []send, clock int64) []send        { return w.counting(sends, clock) }

func (w inFixedWindows) kept(n *naive, _ throttle.ID, clock int64) []send {
	return w.counting(n.sends, clock)
}

func (w inParts) kept(n *naive, _ throttle.ID, clock int64) []send { return w.counting(n.sends, clock) }

// inFixedWindows counts the sends of one full window of the clock.
type inFixedWindows struct {
	atOnce
	tier throttle.Tier
}

func (w inFixedWindows) clock(newest, now int64) int64 {
	return max(now, newest/w.tier.Window*w.tier.Window)
}

func (w inFixedWindows) counting(sends []send, clock int64) (all []send) {
	for _, s := range sends {
		if s.at/w.tier.Window == clock/w.tier.Window {
			all = append(all, s)
		}
	}
	return all
}

func (w inFixedWindows) standing(counting []send, clock int64) throttle.Standing {
	s := throttle.Standing{Tier: w.tier, Remaining: w.tier.Limit - len(counting)}
	if s.Remaining <= 0 {
		s.Remaining, s.Wait = 0, (clock/w.tier.Window+1)*w.tier.Window-clock
	}
	return s
}

func (w inFixedWindows) used(counting []send, _ int64) int { return len(counting) }

// inParts counts each send until the last moment of its part has left the window.
type inParts struct {
	atOnce
	tier  throttle.Tier
	parts int64
}

// span is the first moment of the part that a moment is in, and the last.
func (w inParts) span(at int64) (first, last int64) {
	part := w.tier.Window / w.parts
	if w.tier.Window%w.parts > 0 {
		part++
	}
	return at / part * part, at/part*part + part - 1
}

func (w inParts) clock(newest, now int64) int64 {
	first, _ := w.span(newest)
	return max(now, first)
}

func (w inParts) counting(sends []send, clock int64) (all []send) {
	for _, s := range sends {
		if _, last := w.span(s.at); clock-last < w.tier.Window {
			all = append(all, s)
		}
	}
	return all
}

func (w inParts) standing(counting []send, clock int64) throttle.Standing {
	s := throttle.Standing{Tier: w.tier, Remaining: w.tier.Limit - len(counting)}
	if s.Remaining <= 0 {
		_, last := w.span(counting[len(counting)-w.tier.Limit].at)
		s.Remaining, s.Wait = 0, last+w.tier.Window-clock
	}
	return s
}

func (w inParts) used(counting []send, _ int64) int { return len(counting) }

// inBucket keeps, in place of a level, the moment at which the bucket will be empty:
// each send moves it by as long as it takes to drain. It is counted in as many parts of
// a millisecond as the limit has sends, so that all is whole numbers.
type inBucket struct {
	tier  throttle.Tier
	room  int64
	queue bool
}

func (inBucket) clock(newest, now int64) int64 { return max(now, newest) }

// empty is when these have drained, in parts of a millisecond, and where those begin
// that came since the bucket was empty before.
func (w inBucket) empty(sends []send) (moment int64, begin int) {
	for i, s := range sends {
		if came := s.at * int64(w.tier.Limit); moment <= came {
			moment, begin = came, i
		}
		moment += w.tier.Window
	}
	return moment, begin
}

// counting is those since the bucket was last empty.
func (w inBucket) counting(sends []send, clock int64) []send {
	moment, begin := w.empty(sends)
	if moment <= clock*int64(w.tier.Limit) {
		return nil
	}
	return sends[begin:]
}

// level is what is in the bucket, a send being as many parts as the window is long.
func (w inBucket) level(counting []send, clock int64) int64 {
	moment, _ := w.empty(counting)
	return max(0, moment-clock*int64(w.tier.Limit))
}

func (w inBucket) standing(counting []send, clock int64) throttle.Standing {
	whole := throttle.Tier{Name: w.tier.Name, Limit: int(w.room), Window: upward(w.room*w.tier.Window, int64(w.tier.Limit))}
	free := w.room*w.tier.Window - w.level(counting, clock)
	s := throttle.Standing{Tier: whole, Remaining: max(0, int(free/w.tier.Window))}
	if free < w.tier.Window {
		s.Wait = upward(w.tier.Window-free, int64(w.tier.Limit))
	}
	return s
}

func (w inBucket) used(counting []send, clock int64) int {
	return int(upward(w.level(counting, clock), w.tier.Window))
}

func (w inBucket) turn(counting []send, i int, clock int64) int64 {
	if !w.queue {
		return 0
	}
	if i < len(counting) {
		clock = counting[i].at
	}
	moment, _ := w.empty(counting[:i])
	return max(clock, upward(moment, int64(w.tier.Limit)))
}

func (w inBucket) keepsPlaces() bool { return w.queue }

// remembered are all that are on the list, while there is anything in the bucket.
func (w inBucket) remembered(sends []send, clock int64) []send {
	if len(w.counting(sends, clock)) == 0 {
		return nil
	}
	return sends
}

// kept are all, unless the bucket is empty and nothing is to be recorded late. One that comes
// again when it is empty is another.
func (w inBucket) kept(n *naive, id throttle.ID, clock int64) []send {
	if len(w.counting(n.sends, clock)) > 0 || n.open && find(n.sends, id) < 0 {
		return n.sends
	}
	n.open = false
	return nil
}

// upward is a/b, to the next whole number.
func upward(a, b int64) int64 {
	if a%b > 0 {
		return a/b + 1
	}
	return a / b
}
