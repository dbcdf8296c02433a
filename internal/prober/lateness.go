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

// lateness measures how late the timers of this process fire, because it was stopped or has too
// much to do. A process that is late itself takes any server for a silent one.
type lateness struct {
	most time.Duration // beyond it silence proves nothing

	mu    sync.Mutex
	due   time.Time        // of the next tick
	last  time.Time        // when a tick was last late beyond the bound
	worst [2]time.Duration // in the current period of shownFor, and in the one before
	began time.Time        // of the current period
}

func newLateness(now time.Time, most time.Duration) *lateness {
	return &lateness{most: most, due: now.Add(tick), began: now}
}

// run measures until ctx ends.
func (l *lateness) run(ctx context.Context) {
	timer := time.NewTimer(tick)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			l.ticked(time.Now())
			timer.Reset(tick)
		case <-ctx.Done():
			return
		}
	}
}

func (l *lateness) ticked(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note(now)
	l.due = now.Add(tick)
}

// note measures how late the next tick is by now. It may still be missing: what asks right after
// the process was stopped may run before it.
func (l *lateness) note(now time.Time) {
	switch passed := now.Sub(l.began); {
	case passed >= 2*shownFor:
		l.worst, l.began = [2]time.Duration{}, now
	case passed >= shownFor:
		l.worst, l.began = [2]time.Duration{0, l.worst[0]}, now
	}
	late := now.Sub(l.due)
	l.worst[0] = max(l.worst[0], late)
	if late > l.most {
		l.last = now
	}
}

// lateSince reports whether this process was late beyond the bound at some time since.
func (l *lateness) lateSince(since, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note(now)
	return !l.last.Before(since)
}

// shown is the worst lateness of the last 30 to 60 seconds.
func (l *lateness) shown(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note(now)
	return max(l.worst[0], l.worst[1])
}
