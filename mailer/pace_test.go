package mailer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/servertest"
)

const ms = int64(time.Millisecond)

// TestBucketRule plays timed steps against the rule alone, ten a second. Times
// are in milliseconds.
func TestBucketRule(t *testing.T) {
	type step struct {
		at       int64
		leaves   bool  // the first in line tries to leave, instead of one arriving
		patience int64 // of the one arriving; 0: for ever
		busy     bool
		wait     int64
	}
	for name, steps := range map[string][]step{
		"the first leaves at once": {{at: 0}},
		"one may leave each interval": {
			{at: 0}, {at: 100}, {at: 200}, {at: 1000}, {at: 1100},
		},
		"an idle hour saves up nothing": {
			{at: 0}, {at: 3_600_000}, {at: 3_600_000, wait: 100},
		},
		"the queue waits its turn": {
			{at: 0}, {at: 0, wait: 100}, {at: 0, wait: 200}, {at: 10, wait: 290},
		},
		"leaving in even steps": {
			{at: 0}, {at: 0, wait: 100}, {at: 0, wait: 200},
			{at: 99, leaves: true, wait: 1}, {at: 100, leaves: true}, {at: 100, leaves: true, wait: 100},
			{at: 100, wait: 200}, {at: 200, leaves: true}, {at: 300, leaves: true}, {at: 400},
		},
		"nobody overtakes": {
			{at: 0}, {at: 0, wait: 100}, {at: 150, wait: 100},
		},
		"too little patience is told at once": {
			{at: 0}, {at: 0, patience: 99, busy: true, wait: 1}, {at: 0, patience: 100, wait: 100},
			{at: 0, patience: 150, busy: true, wait: 50},
		},
		"a late timer is made up for": {
			{at: 0}, {at: 0, wait: 100}, {at: 0, wait: 200},
			{at: 104, leaves: true}, {at: 200, leaves: true},
		},
		"a stopped machine makes up for next to nothing": {
			{at: 0}, {at: 0, wait: 100}, {at: 0, wait: 200},
			{at: 5000, leaves: true}, {at: 5000, leaves: true, wait: 95},
		},
		"a clock stepping back stops nobody for longer than an interval": {
			{at: 1_000_000}, {at: 0, wait: 100}, {at: 100, leaves: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, free, waiting := newBucket(Pace{PerSecond: 10}), int64(0), 0
			for i, s := range steps {
				var wait int64
				ok := true
				if s.leaves {
					if free, wait = b.depart(free, s.at*ms); wait == 0 {
						waiting--
					}
				} else {
					patience := s.patience * ms
					if patience == 0 {
						patience = int64(time.Hour)
					}
					if free, wait, ok = b.arrive(free, waiting, s.at*ms, patience); ok && wait > 0 {
						waiting++
					}
				}
				if wait != s.wait*ms || ok == s.busy {
					t.Fatalf("step %d: wait %v busy %v, want %d ms and %v", i, time.Duration(wait), !ok, s.wait, s.busy)
				}
			}
		})
	}
}

// standing waits until so many stand in line.
func (p *pacer) standing(t *testing.T, want int) {
	t.Helper()
	servertest.Eventually(t, fmt.Sprintf("%d stand in line", want), func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.line.count == want
	})
}

// TestTurnsGivenUp: who gives up makes room, and the others keep their order.
func TestTurnsGivenUp(t *testing.T) {
	var now atomic.Int64
	now.Store(1000)
	p := newPacer(Pace{PerSecond: 1, Queue: 5}, now.Load, nil)
	defer p.stop()
	far := time.Now().Add(time.Hour)
	if err := p.wait(t.Context(), "", far); err != nil {
		t.Fatal(err)
	}
	left := make(chan int, 5)
	gave := make(chan error, 5)
	var leave [5]context.CancelFunc
	for i := range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		leave[i] = cancel
		go func() {
			if err := p.wait(ctx, "", far); err != nil {
				gave <- err
				return
			}
			left <- i
		}()
		p.standing(t, i+1)
	}
	if busy, ok := errors.AsType[*BusyError](p.wait(t.Context(), "", far)); !ok || busy.RetryAfter != time.Second {
		t.Errorf("the sixth: %+v, want busy, for a second", busy)
	}
	for i, who := range []int{0, 2} {
		leave[who]()
		if failure, ok := errors.AsType[*SendError](<-gave); !ok || failure.Outcome != Unavailable {
			t.Errorf("who gave up got %v", failure)
		}
		p.standing(t, 4-i)
	}
	var order []int
	for range 3 {
		now.Add(1000)
		p.tick()
		order = append(order, <-left)
	}
	if want := []int{1, 3, 4}; !slices.Equal(order, want) {
		t.Errorf("left in order %v, want %v", order, want)
	}
	for _, cancel := range leave {
		cancel()
	}
}

// TestTurnHandedBack: a turn that comes to somebody who has just given up goes
// to the next in line, not to waste.
func TestTurnHandedBack(t *testing.T) {
	var now atomic.Int64
	now.Store(1000)
	p := newPacer(Pace{PerSecond: 1, Queue: 5}, now.Load, nil)
	defer p.stop()
	join := func() *waiter {
		w, err := p.join("", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	join() // leaves at once
	first, second := join(), join()
	now.Add(1000)
	p.tick()
	if len(first.called) != 1 || len(second.called) != 0 {
		t.Fatal("it is not the first one's turn")
	}
	p.giveUp(first)
	if len(second.called) != 1 {
		t.Error("the turn was not handed on")
	}
}

// TestPaceOnARealClock: the drain is steady, and so is the order.
func TestPaceOnARealClock(t *testing.T) {
	const mails, perSecond = 20, 200
	p := newPacer(Pace{PerSecond: perSecond, Queue: mails}, func() int64 { return time.Now().UnixMilli() }, nil)
	defer p.stop()
	began := time.Now()
	var group sync.WaitGroup
	for range mails {
		group.Go(func() {
			if err := p.wait(t.Context(), "", began.Add(time.Minute)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	// The first leaves at once; a timer is late, never early, but the clock of
	// milliseconds may round one interval and lateness makes up for another.
	least := (mails - 1) * time.Second / perSecond
	if took := time.Since(began); took < least-2*time.Millisecond-time.Duration(lateness) {
		t.Errorf("%d mails left in %v, want no less than %v", mails, took, least)
	}
}

func TestPaceEnds(t *testing.T) {
	gone := make(chan struct{})
	p := newPacer(Pace{PerSecond: 0.001, Queue: 5}, func() int64 { return 0 }, gone)
	far := time.Now().Add(time.Hour)
	if err := p.wait(t.Context(), "", far); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.wait(t.Context(), "", far) }()
	p.standing(t, 1)
	if err := p.wait(t.Context(), "", time.Now().Add(time.Minute)); !errors.Is(err, ErrBusy) {
		t.Errorf("with a minute's patience: %v, want busy at once", err)
	}
	close(gone)
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Errorf("at the end: %v", err)
	}
	if p.stop(); p.timer.Stop() {
		t.Error("its timer goes on")
	}
}

// TestATurnThatDoesNotCome in time is not waited for.
func TestATurnThatDoesNotCome(t *testing.T) {
	p := newPacer(Pace{PerSecond: 1000, Queue: 1}, func() int64 { return 0 }, nil) // a clock that stands
	defer p.stop()
	for i, want := range []error{nil, ErrBusy} {
		if err := p.wait(t.Context(), "", time.Now().Add(50*time.Millisecond)); !errors.Is(err, want) {
			t.Errorf("mail %d: %v, want %v", i+1, err, want)
		}
	}
	p.standing(t, 0)
}

// TestCallersTakeTurns: a caller with many mails in the queue makes the next one
// of another wait for one interval, and room where the queue is full.
func TestCallersTakeTurns(t *testing.T) {
	var now atomic.Int64
	now.Store(1000)
	p := newPacer(Pace{PerSecond: 1, Queue: 4}, now.Load, nil)
	defer p.stop()
	if w, err := p.join("flood", time.Hour); w != nil || err != nil {
		t.Fatal("the first did not leave at once", err)
	}
	var flood []*waiter
	for range 4 {
		w, err := p.join("flood", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		flood = append(flood, w)
	}
	if _, err := p.join("flood", time.Hour); !errors.Is(err, ErrBusy) {
		t.Errorf("the flood's next: %v, want busy", err)
	}
	if _, err := p.join("other", 1999*time.Millisecond); !errors.Is(err, ErrBusy) {
		t.Errorf("with too little patience for the second place: %v, want busy", err)
	}
	other, err := p.join("other", 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if turn := <-flood[3].called; turn || p.line.count != 4 {
		t.Errorf("the flood's last had its turn: %v; %d wait", turn, p.line.count)
	}
	for i, want := range []*waiter{flood[0], other, flood[1], flood[2]} {
		now.Add(1000)
		p.tick()
		if len(want.called) != 1 {
			t.Fatalf("the %d. turn went to another", i+1)
		}
	}
}
