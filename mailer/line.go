package mailer

import "container/list"

// claim is whose shares a mail takes.
type claim struct {
	caller string // who asked for the mail; may be empty
	domain string // the recipient's, without subdomains
}

// waiter is a send that stands in a line.
type waiter struct {
	claim
	since  int64
	number int // in order of arrival
	place  *list.Element
	// called has room for one: true at its turn, false when it is put out of
	// the line to make room.
	called chan bool
	// conn and share are handed over with the call where the line is for
	// connections.
	conn  *smtpConn
	share share
}

// line is who waits, fair between callers: each has a lane, in order of arrival,
// and the lanes take turns. When the line is full, whoever comes from a caller
// with fewer in it puts out one of the caller with the most. So a caller that
// floods the line makes a longer wait for itself and for nobody else.
//
// A line has no lock of its own.
type line struct {
	most, mostPerDomain int // of all, and of one caller to one domain

	count     int
	lanes     map[string]*lane // by caller
	forDomain map[claim]int    // how many wait; those with none are not kept
	turn      int64            // of the lane that was served last
	arrivals  int
}

// lane is one caller's part of a line.
type lane struct {
	waiting list.List // of *waiter
	turn    int64     // the lane with the lowest is next
	served  int       // mails of this caller that have what they waited for, and keep it
}

func newLine(most, mostPerDomain int) *line {
	return &line{most: most, mostPerDomain: mostPerDomain, lanes: map[string]*lane{}, forDomain: map[claim]int{}}
}

// join stands at the end of the caller's lane; the answer is nil where there is
// no place. turned says, by a lane's first, that it is served from its end.
func (l *line) join(c claim, now int64, turned func(*waiter) bool) *waiter {
	if l.forDomain[c] >= l.mostPerDomain || (l.count >= l.most && !l.makeRoom(c.caller, turned)) {
		return nil
	}
	l.arrivals++
	w := &waiter{claim: c, since: now, number: l.arrivals, called: make(chan bool, 1)}
	w.place = l.lane(c.caller).waiting.PushBack(w)
	l.forDomain[c]++
	l.count++
	return w
}

// lane is the caller's. A new one is not ahead of those who wait already.
func (l *line) lane(caller string) *lane {
	own := l.lanes[caller]
	if own == nil {
		own = &lane{turn: l.turn}
		l.lanes[caller] = own
	}
	return own
}

// makeRoom puts out one of the longest lane, if that stays no shorter than the
// caller's own will be: of its mails the one that would be served last.
func (l *line) makeRoom(caller string, turned func(*waiter) bool) bool {
	var longest *lane
	for _, lane := range l.lanes {
		if longest == nil || lane.waiting.Len() > longest.waiting.Len() {
			longest = lane
		}
	}
	if longest == nil || longest.waiting.Len() < l.waitingOf(caller)+2 {
		return false
	}
	last := longest.waiting.Back()
	if first := longest.waiting.Front(); turned(first.Value.(*waiter)) {
		last = first
	}
	w := last.Value.(*waiter)
	l.leave(w)
	w.called <- false
	return true
}

func (l *line) waitingOf(caller string) int {
	if own := l.lanes[caller]; own != nil {
		return own.waiting.Len()
	}
	return 0
}

// leave takes a waiter out of the line.
func (l *line) leave(w *waiter) {
	l.lanes[w.caller].waiting.Remove(w.place)
	add(l.forDomain, w.claim, -1)
	l.count--
}

// next takes out whose turn it is among those who may be served: of the caller
// that has been given least and, among such, has waited for its turn longest.
func (l *line) next(may func(domain string) bool, turned func(*waiter) bool) *waiter {
	var found *waiter
	var best *lane
	for caller, lane := range l.lanes {
		if lane.waiting.Len() == 0 {
			l.tidy(caller, lane)
			continue
		}
		if best != nil && best.before(lane) {
			continue
		}
		if w := lane.first(may, turned); w != nil && (best == nil || lane.before(best) || w.number < found.number) {
			found, best = w, lane
		}
	}
	if found != nil {
		l.leave(found)
		l.turn = max(l.turn, best.turn)
		best.turn = l.turn + 1
	}
	return found
}

// before says whether a lane is served before another.
func (a *lane) before(b *lane) bool {
	if a.served != b.served {
		return a.served < b.served
	}
	return a.turn < b.turn
}

// first is the first of the lane that may be served; where the lane has turned,
// the last.
func (a *lane) first(may func(domain string) bool, turned func(*waiter) bool) *waiter {
	place, follow := a.waiting.Front(), (*list.Element).Next
	if turned(place.Value.(*waiter)) {
		place, follow = a.waiting.Back(), (*list.Element).Prev
	}
	for ; place != nil; place = follow(place) {
		if w := place.Value.(*waiter); may(w.domain) {
			return w
		}
	}
	return nil
}

// took and gave count what a caller's mails keep while they are served.
func (l *line) took(caller string) { l.lane(caller).served++ }

func (l *line) gave(caller string) {
	own := l.lanes[caller]
	own.served--
	l.tidy(caller, own)
}

// tidy forgets a lane that is not in use, once it would get nothing by that.
func (l *line) tidy(caller string, lane *lane) {
	if lane.waiting.Len() == 0 && lane.served == 0 && lane.turn <= l.turn {
		delete(l.lanes, caller)
	}
}

// ahead is how many are served before the next of this caller, as things stand.
func (l *line) ahead(caller string) (n int) {
	own := l.waitingOf(caller)
	for name, lane := range l.lanes {
		if name != caller {
			n += min(lane.waiting.Len(), own+1)
		}
	}
	return n + own
}

func add[Key comparable](counts map[Key]int, key Key, n int) {
	if counts[key] += n; counts[key] == 0 {
		delete(counts, key)
	}
}
