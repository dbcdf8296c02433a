package throttletest

import (
	"slices"
	"time"

	"github.com/mailgate/mailgate/throttle"
)

// A model says what a limiter must answer for one key, and is too naive to be wrong. It keeps every send,
// counts them anew for each question, and finds the end of a wait by trying moments.
type model interface {
	take(now int64, id throttle.ID) throttle.Verdict
	peek(now int64) throttle.Verdict
	release(a throttle.Admission) bool
	record(now int64, a throttle.Admission)
	reset(now int64) int
	expires() int64              // when nothing counts any more, 0 without a record
	lookBy(a throttle.Algorithm) // from now on, at the same record
}

// rule is one limit: which sends count at a moment.
type rule struct {
	throttle.Tier
	counts func(sent, moment int64) bool
}

// logModel is the model of a Policy and of the counters by windows. What differs is what a send is
// on record by.
type logModel struct {
	rules  []rule
	ids    bool                   // a Policy: it charges an id once
	latest int64                  // the moment that counts if the clock is behind
	moment func(sent int64) int64 // where a send is on record
	slot   func(sent int64) int64 // which sends a counter can take for another
	life   int64                  // how long a send is on record after its moment
	sends  throttle.History
}

func (m *logModel) clock(now int64) int64 { return max(now, m.latest) }

func newest(h throttle.History) int64 {
	if len(h) == 0 {
		return 0
	}
	return h[len(h)-1].At
}

func (m *logModel) count(r rule, moment int64) (n int) {
	for _, s := range m.sends {
		if r.counts(s.At, moment) {
			n++
		}
	}
	return n
}

// longest returns the rule by which a send is on record or not.
func (m *logModel) longest() rule { return m.rules[len(m.rules)-1] }

func (m *logModel) state(r rule, clock int64) throttle.TierState {
	return tierState(r.Tier, clock, func(moment int64) int { return max(0, r.Limit-m.count(r, moment)) })
}

// tierState finds when more remains than now: at the first moment at which it does.
func tierState(tier throttle.Tier, clock int64, remaining func(moment int64) int) throttle.TierState {
	s := throttle.TierState{Tier: tier, Remaining: remaining(clock)}
	if s.Remaining < tier.Limit {
		step := int64(1)
		for remaining(clock+step) <= s.Remaining {
			step *= 2
		}
		low, high := clock+step/2, clock+step // not yet at low, unless that is now
		for high-low > 1 {
			if middle := (low + high) / 2; remaining(middle) > s.Remaining {
				high = middle
			} else {
				low = middle
			}
		}
		s.Refill = high - clock
	}
	if s.Remaining == 0 {
		s.Wait = s.Refill
	}
	return s
}

// answer returns the verdict on the next send.
func answer(now, clock int64, tiers []throttle.TierState) throttle.Verdict {
	v := throttle.Verdict{Allowed: true, Now: now, At: clock, RetryAt: now, Tiers: tiers}
	for _, t := range tiers {
		if t.Remaining == 0 {
			v.Allowed = false
			if t.Wait >= v.Wait {
				v.Limit, v.Wait, v.RetryAt = t.Name, t.Wait, clock+t.Wait
			}
		}
	}
	return v
}

func (m *logModel) peek(now int64) throttle.Verdict {
	clock := m.clock(now)
	var tiers []throttle.TierState
	for _, r := range m.rules {
		tiers = append(tiers, m.state(r, clock))
	}
	v := answer(now, clock, tiers)
	v.Sent = m.count(m.longest(), clock)
	if m.ids {
		v.Newest = newest(m.history(now))
	}
	return v
}

func (m *logModel) take(now int64, id throttle.ID) throttle.Verdict {
	clock := m.clock(now)
	i := m.find(throttle.Admission{ID: id})
	if m.ids && i >= 0 && m.longest().counts(m.sends[i].At, clock) {
		v := m.peek(now)
		v.Allowed, v.At, v.Admission = true, m.sends[i].At, m.sends[i]
		return v
	}
	if v := m.peek(now); !v.Allowed {
		return v
	}
	m.add(throttle.Admission{ID: id, At: clock})
	v := m.peek(now)
	v.Allowed, v.At, v.Admission = true, clock, throttle.Admission{ID: id, At: clock}
	return v
}

// add puts a send on record at its time, and forgets what has left its window by the latest.
func (m *logModel) add(a throttle.Admission) {
	i := 0
	for i < len(m.sends) && m.sends[i].At <= a.At {
		i++
	}
	m.sends = slices.Insert(m.sends, i, a)
	m.latest = max(m.latest, m.moment(a.At))
	m.sends = slices.DeleteFunc(m.sends, func(s throttle.Admission) bool { return !m.longest().counts(s.At, m.latest) })
}

// find returns a send on record: by its id, or of a counter one that cannot be told from it.
func (m *logModel) find(a throttle.Admission) int {
	return slices.IndexFunc(m.sends, func(s throttle.Admission) bool {
		return m.ids && s.ID == a.ID || !m.ids && m.slot(s.At) == m.slot(a.At)
	})
}

func (m *logModel) release(a throttle.Admission) bool {
	i := m.find(a)
	if i < 0 {
		return false
	}
	m.sends = slices.Delete(m.sends, i, i+1)
	if m.ids {
		m.latest = newest(m.sends)
	}
	return true
}

func (m *logModel) record(now int64, a throttle.Admission) {
	clock := m.clock(now)
	a.At = min(a.At, clock)
	if a.At < 0 || !m.longest().counts(a.At, clock) || m.ids && m.find(a) >= 0 {
		return
	}
	m.add(a)
}

func (m *logModel) reset(now int64) int {
	n := m.count(m.longest(), m.clock(now))
	m.sends, m.latest = nil, 0
	return n
}

func (m *logModel) expires() int64 {
	if m.latest == 0 {
		return 0
	}
	return m.latest + m.life
}

func (m *logModel) history(now int64) (h throttle.History) {
	for _, s := range m.sends {
		if m.longest().counts(s.At, m.clock(now)) {
			h = append(h, s)
		}
	}
	return h
}

func (m *logModel) lookBy(a throttle.Algorithm) {
	tiers := a.Peek(nil, 0).Tiers
	for i := range tiers {
		m.rules[i].Tier = tiers[i].Tier
	}
}

func modelOf(a throttle.Algorithm) model {
	switch a := a.(type) {
	case throttle.FixedWindow:
		return modelOfFixedWindow(a.Tier())
	case throttle.SlidingWindow:
		return modelOfSlidingWindow(a.Tier(), a.Part())
	case throttle.TokenBucket:
		return &bucketModel{tier: a.Tier(), room: int64(a.Room())}
	case throttle.LeakyBucket:
		return &bucketModel{tier: a.Tier(), room: int64(a.Room()), queue: true}
	}
	return modelOfPolicy(a.(throttle.Policy))
}

func modelOfPolicy(p throttle.Policy) *logModel {
	m := &logModel{ids: true, moment: func(sent int64) int64 { return sent }, life: p.Window()}
	for _, t := range p.Tiers() {
		m.rules = append(m.rules, rule{t, func(sent, moment int64) bool { return moment-sent < t.Window.Milliseconds() }})
	}
	return m
}

func modelOfFixedWindow(t throttle.Tier) *logModel {
	window := t.Window.Milliseconds()
	return &logModel{
		rules:  []rule{{t, func(sent, moment int64) bool { return sent/window == moment/window }}},
		moment: func(sent int64) int64 { return sent / window * window },
		slot:   func(sent int64) int64 { return sent / window },
		life:   window,
	}
}

func modelOfSlidingWindow(t throttle.Tier, part int64) *logModel {
	last := func(sent int64) int64 { return sent/part*part + part - 1 } // of its part
	return &logModel{
		rules:  []rule{{t, func(sent, moment int64) bool { return moment-last(sent) < t.Window.Milliseconds() }}},
		moment: func(sent int64) int64 { return sent / part * part },
		slot:   last,
		life:   part - 1 + t.Window.Milliseconds(),
	}
}

// bucketModel is the model of both buckets: the level is in sends times the milliseconds of
// the window, and falls by limit in each millisecond.
type bucketModel struct {
	tier      throttle.Tier
	room      int64
	queue     bool
	at, level int64
}

func (m *bucketModel) clock(now int64) int64 { return max(now, m.at) }

// levelAt drains the bucket.
func (m *bucketModel) levelAt(moment int64) int64 {
	return max(0, m.level-(moment-m.at)*int64(m.tier.Limit))
}

func (m *bucketModel) peek(now int64) throttle.Verdict {
	window, clock := m.tier.Window.Milliseconds(), m.clock(now)
	limit := int64(m.tier.Limit)
	tier := throttle.Tier{Name: m.tier.Name, Limit: int(m.room), Window: time.Duration((m.room*window+limit-1)/limit) * time.Millisecond}
	v := answer(now, clock, []throttle.TierState{tierState(tier, clock, func(moment int64) int {
		return int(max(0, m.room*window-m.levelAt(moment)) / window)
	})})
	if v.Allowed {
		v.Delay = m.delay(clock)
	}
	v.Sent = m.used(clock)
	return v
}

// delay returns when the queue is empty, found by trying.
func (m *bucketModel) delay(clock int64) (ms int64) {
	if !m.queue {
		return 0
	}
	for m.levelAt(clock+ms) > 0 {
		ms += max(1, m.levelAt(clock+ms)/int64(m.tier.Limit))
	}
	return ms
}

func (m *bucketModel) take(now int64, id throttle.ID) throttle.Verdict {
	v := m.peek(now)
	if !v.Allowed {
		return v
	}
	clock, delay := m.clock(now), v.Delay
	m.level, m.at = m.levelAt(clock)+m.tier.Window.Milliseconds(), clock
	v = m.peek(now)
	v.Allowed, v.Delay, v.Admission = true, delay, throttle.Admission{ID: id, At: clock}
	return v
}

// release takes out what a send leaves at the latest moment if it came to an empty bucket,
// and from a queue only the newest.
func (m *bucketModel) release(a throttle.Admission) bool {
	alone := bucketModel{tier: m.tier, at: a.At, level: m.tier.Window.Milliseconds()}
	left := alone.levelAt(m.at)
	if m.level == 0 || a.At > m.at || m.queue && a.At < m.at || left == 0 {
		return false
	}
	m.level = max(0, m.level-left)
	return true
}

func (m *bucketModel) record(now int64, a throttle.Admission) {
	window := m.tier.Window.Milliseconds()
	full := bucketModel{tier: m.tier, at: min(a.At, m.clock(now)), level: m.room * window}
	if full.at < 0 || full.at < m.at && full.levelAt(m.at) == 0 {
		return
	}
	if full.at > m.at {
		m.level, m.at = m.levelAt(full.at), full.at
	}
	m.level = max(m.level, min(m.level+window, m.room*window))
}

func (m *bucketModel) lookBy(a throttle.Algorithm) {
	m.room = int64(a.(interface{ Room() int }).Room())
}

// used counts sends until the level is empty.
func (m *bucketModel) used(clock int64) (n int) {
	for level := m.levelAt(clock); level > 0; level -= m.tier.Window.Milliseconds() {
		n++
	}
	return n
}

func (m *bucketModel) reset(now int64) int {
	n := m.used(m.clock(now))
	m.at, m.level = 0, 0
	return n
}

func (m *bucketModel) expires() int64 {
	if m.at == 0 {
		return 0
	}
	return m.at + (max(m.level, m.tier.Window.Milliseconds())+int64(m.tier.Limit)-1)/int64(m.tier.Limit)
}
