package relay

import (
	"context"
	"sync"
	"testing"
	"time"
)

// steps by the clock: when a mail comes, how long it must wait.
func TestPace_Reserve(t *testing.T) {
	const hour = time.Hour
	type step struct {
		at       int64 // milliseconds
		patience time.Duration
		left     bool // one that waited leaves first
		busy     bool
		wait     int64 // milliseconds
	}
	for name, steps := range map[string][]step{
		"the first leaves at once":             {{at: 0}},
		"one leaves each interval":             {{at: 0}, {at: 100}, {at: 200}, {at: 1000}, {at: 1100}},
		"an idle hour saves up nothing":        {{at: 0}, {at: 3_600_000}, {at: 3_600_000, wait: 100}},
		"the queue waits in order":             {{at: 0}, {at: 0, wait: 100}, {at: 0, wait: 200}, {at: 10, wait: 290}},
		"too little patience is told at once":  {{at: 0}, {at: 0, patience: 99 * time.Millisecond, busy: true, wait: 100}, {at: 0, patience: 100 * time.Millisecond, wait: 100}},
		"a refused one takes no slot":          {{at: 0}, {at: 0, patience: 1, busy: true, wait: 100}, {at: 0, wait: 100}},
		"a full queue refuses":                 {{at: 0}, {at: 0, wait: 100}, {at: 0, wait: 200}, {at: 0, wait: 300}, {at: 0, busy: true, wait: 100}, {at: 100, left: true, wait: 300}},
		"a clock that steps back stops nobody": {{at: 1_000_000}, {at: 0, wait: 100}, {at: 100, left: true, wait: 100}},
	} {
		t.Run(name, func(t *testing.T) {
			now := int64(0)
			p := newPacer(Pace{PerSecond: 10, Queue: 3}, func() int64 { return now }, nil)
			for i, s := range steps {
				now = s.at
				if s.left {
					p.left()
				}
				if s.patience == 0 {
					s.patience = hour
				}
				wait, failure := p.reserve(s.patience)
				if (failure != nil) != s.busy || !s.busy && wait != time.Duration(s.wait)*time.Millisecond {
					t.Fatalf("step %d: wait %v, %v; want %d ms, busy %v", i, wait, failure, s.wait, s.busy)
				}
				if s.busy && (failure.Outcome != Busy || failure.RetryAfter < time.Duration(s.wait)*time.Millisecond) {
					t.Errorf("step %d: retry after %v", i, failure.RetryAfter)
				}
			}
		})
	}
}

func TestPace_RealClock_Steady(t *testing.T) {
	const mails, perSecond = 20, 200
	p := newPacer(Pace{PerSecond: perSecond, Queue: mails}, func() int64 { return time.Now().UnixMilli() }, nil)
	began := time.Now()
	var group sync.WaitGroup
	for range mails {
		group.Go(func() {
			if failure := p.wait(newBudget(t.Context(), began, time.Minute)); failure != nil {
				t.Error(failure)
			}
		})
	}
	group.Wait()
	// The first leaves at once, and the clock of milliseconds may round one interval.
	if took, least := time.Since(began), (mails-2)*time.Second/perSecond; took < least {
		t.Errorf("%d mails left in %v, want no less than %v", mails, took, least)
	}
}

func TestPace_WaitEnds(t *testing.T) {
	gone := make(chan struct{})
	p := newPacer(Pace{PerSecond: 0.001, Queue: 5}, func() int64 { return 0 }, gone)
	ctx, cancel := context.WithCancel(t.Context())
	b := newBudget(ctx, time.Now(), time.Hour)
	if failure := p.wait(b); failure != nil {
		t.Fatal(failure)
	}
	cancel()
	if failure := p.wait(b); failure == nil || failure.Outcome != Unavailable {
		t.Errorf("with the caller gone: %v", failure)
	}
	close(gone)
	if failure := p.wait(newBudget(t.Context(), time.Now(), time.Hour)); failure == nil || failure.Err != ErrClosed {
		t.Errorf("after Close: %v", failure)
	}
	if p.waiting != 0 {
		t.Errorf("%d still wait", p.waiting)
	}
}
