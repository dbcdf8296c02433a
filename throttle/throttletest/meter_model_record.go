package throttletest

import (
	"slices"

	"github.com/mailgate/mailgate/throttle"
)

// record puts a send on the list that came as much before the clock as it is old.
func (n *naive) record(now int64, id throttle.ID, at int64) {
	if at < 0 {
		return
	}
	clock := n.clock(now)
	n.way.record(n, send{id: id, at: clock - (now - min(at, now)), known: true}, clock)
}

// recordInWindow counts a send that has not left, whether or not there was room for it.
func recordInWindow(n *naive, s send, clock int64) {
	if len(n.way.counting([]send{s}, clock)) == 0 || find(n.counting(s.at), s.id) >= 0 {
		return
	}
	n.sends = n.counting(s.at)
	n.insert(s)
	n.forget()
}

func (w inFixedWindows) record(n *naive, s send, clock int64) { recordInWindow(n, s, clock) }

// record remembers one only where those that are not remembered are older.
func (w inParts) record(n *naive, s send, clock int64) {
	all := n.counting(s.at)
	oldest, _ := w.span(n.clock(s.at))
	if len(n.sends) > 0 {
		oldest, _ = w.span(n.newest())
	}
	if i := slices.IndexFunc(all, func(s send) bool { return s.known }); i >= 0 {
		oldest = all[i].at
	}
	s.known = s.at >= oldest || !slices.ContainsFunc(all, func(s send) bool { return !s.known })
	recordInWindow(n, s, clock)
}

// record puts a send in as of its time, if those that came later leave room until it has drained.
func (w inBucket) record(n *naive, s send, clock int64) {
	late := clock-s.at > 1000
	switch {
	case s.at >= n.newest() && !late:
		n.take(s.at, s.id)
	case find(n.sends, s.id) >= 0:
	case s.at >= n.newest():
		w.recordNewest(n, s)
	default:
		w.recordBetween(n, s, late)
	}
}

func (w inBucket) recordNewest(n *naive, s send) {
	counting := w.counting(n.sends, s.at)
	if w.standing(counting, s.at).Wait > 0 {
		return
	}
	if len(counting) == 0 && !n.open {
		n.sends = nil
	}
	n.open = forgottenOf(n.sends) == 0
	n.insert(s)
}

func (w inBucket) recordBetween(n *naive, s send, late bool) {
	before := n.sends
	if forgotten := forgottenOf(before); forgotten > 0 {
		since := before[forgotten-1].at
		if since > s.at && (since-s.at)*int64(w.tier.Limit) >= w.room*w.tier.Window {
			return // nobody knows whether the bucket was empty in between
		}
		s.at = max(s.at, since)
	}
	for i := n.insert(s); i < len(n.sends); i++ {
		at := n.sends[i].at
		level := w.level(n.sends[:i+1], at)
		if level == w.level(before[:i], at) {
			break // it has drained
		}
		if level > w.room*w.tier.Window {
			n.sends = before
			return
		}
	}
	n.open = n.open || late && forgottenOf(before) == 0
}

// forgottenOf is how many of these are not remembered. They are the oldest.
func forgottenOf(sends []send) (number int) {
	for number < len(sends) && !sends[number].known {
		number++
	}
	return number
}
