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
)

// lateness notes when the timers of this process fire too late, because it was stopped or has too
// much to do. A process that is late itself takes any server for a silent one.
type lateness struct {
	most time.Duration // beyond it silence proves nothing

	mu    sync.Mutex
	due   time.Time // of the next tick
	last  time.Time // when a tick was last late
	times uint64    // that one was
}

func newLateness(now time.Time, most time.Duration) *lateness {
	return &lateness{most: most, due: now.Add(tick)}
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
	if now.Sub(l.due) > l.most {
		l.last = now
		l.times++
	}
	l.due = now.Add(tick)
}

// lateSince reports whether this process was late at some time since. The next tick may still be
// missing: what asks right after the process was stopped may run before it.
func (l *lateness) lateSince(since, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now.Sub(l.due) > l.most || !l.last.Before(since)
}

// count returns how often this process was late.
func (l *lateness) count() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.times
}
