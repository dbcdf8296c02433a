package prober

import (
	"context"
	"sync"
	"time"
)

const (
	// tick is how often lateness is measured.
	tick = 20 * time.Millisecond
	// lateFor is for how long silence proves nothing after this process was late.
	lateFor = time.Second
	// shownFor is for how long at least the worst lateness is shown, so that a scrape meets it.
	shownFor = 30 * time.Second
)

// Lateness measures how late the timers of this process fire: because it was stopped, or because
// it has too much to do. One that is late itself takes any server for a silent one. All methods
// are safe for concurrent use.
type Lateness struct {
	now  func() time.Duration
	most time.Duration // beyond it silence proves nothing

	mu       sync.Mutex
	due      time.Duration // when the next tick is to be
	last     time.Duration // when it was last late beyond the bound
	wasLate  bool
	worst    [2]time.Duration // in the current period of shownFor, and in the one before
	periodAt time.Duration    // when the current one began
}

// NewLateness makes one that goes by a monotonic clock. Silence proves nothing while lateness
// exceeds most. Run makes it measure.
func NewLateness(now func() time.Duration, most time.Duration) *Lateness {
	return &Lateness{now: now, most: most, due: now() + tick, periodAt: now()}
}

// Run measures until ctx ends.
func (l *Lateness) Run(ctx context.Context) {
	timer := time.NewTimer(tick)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			l.ticked()
			timer.Reset(tick)
		case <-ctx.Done():
			return
		}
	}
}

// ticked notes that the tick that was due has come, and when the next is.
func (l *Lateness) ticked() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.note(now)
	l.due = now + tick
}

// note measures how late the tick is that is due. It may still be missing: what asks right after
// the process was stopped may run before the tick.
func (l *Lateness) note(now time.Duration) {
	switch passed := now - l.periodAt; {
	case passed >= 2*shownFor:
		l.worst, l.periodAt = [2]time.Duration{}, now
	case passed >= shownFor:
		l.worst, l.periodAt = [2]time.Duration{0, l.worst[0]}, now
	}
	late := now - l.due
	l.worst[0] = max(l.worst[0], late)
	if late > l.most {
		l.last, l.wasLate = now, true
	}
}

// LateSince reports whether this process was late beyond the bound since a moment of its clock.
func (l *Lateness) LateSince(moment time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note(l.now())
	return l.wasLate && l.last >= moment
}

// Worst is the worst lateness of the last 30 to 60 seconds.
func (l *Lateness) Worst() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note(l.now())
	return max(l.worst[0], l.worst[1])
}
