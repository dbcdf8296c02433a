package outage

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Start begins to watch: what is owed from before is written as soon as it can be.
func (w *Watch) Start() {
	w.started = true
	owed := w.owed()
	if owed > 0 {
		w.note(errBefore, nil)
	}
	if others := w.ledger.count.Load() - int64(owed); others > 0 {
		w.o.Log.Warn("some of what this node did alone was by rules that are no more: it is not written to the shared history, and dropped when it is old, unless they are back before", "debts", others)
		w.rouse() // when the shared history was met its clock says what is old
	}
	go w.work()
}

var errBefore = errors.New("what this node did alone before it was started is not yet written")

// work looks after outages, and after debts and gaps that are left, until it is stopped.
func (w *Watch) work() {
	defer close(w.done)
	sweeps := time.NewTicker(sweepPauses * w.o.Pause)
	defer sweeps.Stop()
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-sweeps.C:
			w.sweep()
		case <-w.wake:
		}
		for w.mend(); w.hasWork(); w.mend() {
			if !w.pause(sweeps.C) {
				return
			}
		}
	}
}

// hasWork does what is to be done beside the debts, and reports whether anything is left. A
// disk that hangs is asked for nothing more, as all else would wait for it too.
func (w *Watch) hasWork() bool {
	if w.scribe.hangs() {
		return true
	}
	whole, cleared := w.closeGaps(), w.ledger.clear()
	unmet := w.met.Load() && !w.whole.Load() // a part of the shared history
	return !whole || !cleared || unmet || w.away.Load() || w.owed() > 0
}

// pause waits between two attempts, and reports whether there is to be another. Debts that
// have to wait for somebody else can wait longer.
func (w *Watch) pause(sweeps <-chan time.Time) bool {
	pause := w.o.Pause
	if !w.away.Load() {
		pause *= 4
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-sweeps:
		w.sweep()
		return true
	case <-w.ctx.Done():
		return false
	}
}

// mend asks whether the shared history is back, tells it what it missed, and ends the
// outage if nothing is in the way.
func (w *Watch) mend() {
	notes, doubts := w.doubts()
	if w.o.Shared(w.ctx) != nil {
		return
	}
	w.heard()
	w.meet(w.ctx)
	w.answers.Store(true)
	later, taken := w.settleAll()
	if !taken {
		return
	}
	for _, doubt := range doubts {
		if doubt != nil && doubt(w.ctx) != nil {
			return
		}
	}
	w.over(notes, later)
}

func (w *Watch) doubts() (notes uint64, all doubts) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.outage.notes, w.outage.doubts
}

// over ends the outage, unless it was met with again since notes, or more is owed than what
// has to wait for somebody else.
func (w *Watch) over(notes uint64, later int) {
	w.mu.Lock()
	o := w.outage
	ended := o.since != 0 && o.notes == notes && w.owing() <= later
	if ended {
		w.outage = outage{}
		w.away.Store(false)
	}
	w.mu.Unlock()
	if ended {
		w.tellEnd(o)
	}
}

func (w *Watch) tellEnd(o outage) {
	now, before := w.tally(), o.before
	w.o.Log.Info("the shared history is back, and has what it missed", "lasted", time.Since(o.began).Round(time.Millisecond).String(),
		"admitted_alone", now.admitted-before.admitted, "written", now.written-before.written,
		"expired", now.expired-before.expired, "given_back", now.givenBack-before.givenBack)
}

// settleAll settles what can be, and goes on after a failure. It reports how many debts have
// to wait for somebody else, and whether the shared history took all that it was handed.
func (w *Watch) settleAll() (later int, taken bool) {
	var failed atomic.Bool
	var waiting atomic.Int64
	var done sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for _, holder := range w.ledger.holders() {
		a, key := w.accountOf(holder)
		if a == nil { // it is kept while it counts, as the rule may come back
			continue
		}
		free <- struct{}{}
		done.Go(func() {
			defer func() { <-free }()
			err := a.settleMost(w.ctx, key)
			switch {
			case errors.Is(err, errLater):
				waiting.Add(int64(w.ledger.number(holder)))
			case err != nil:
				failed.Store(true)
			}
		})
	}
	done.Wait()
	return int(waiting.Load()), !failed.Load()
}

// passes is how often a key is settled while all others wait for their turn.
const passes = 8

// settleMost settles a key until few debts have come meanwhile: whoever asks about it next
// pays those.
func (a *account) settleMost(ctx context.Context, key string) error {
	for range passes {
		if err := a.settle(ctx, key); err != nil {
			return err
		}
		if a.watch.ledger.number(a.holder(key)) <= a.few() {
			break
		}
	}
	return nil
}

// owed is how many debts there are that can be settled. Those of a rule that is no more
// cannot.
func (w *Watch) owed() (debts int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.owing()
}

// owing is owed while the accounts are held.
func (w *Watch) owing() (debts int) {
	if w.ledger.count.Load() == 0 {
		return 0
	}
	for name := range w.accounts {
		debts += int(w.ledger.countOf(name).Load())
	}
	return debts
}

// Close ends the watch. Until ctx ends it tries to write what is owed; the log says what is
// left. Nothing that was wrapped may be used any more.
func (w *Watch) Close(ctx context.Context) {
	w.closing.Do(func() {
		if w.started {
			w.await(ctx)
			w.stop()
			<-w.done
			w.tellLeft()
		}
		w.ledger.close()
		w.gaps.close()
	})
}

// await returns when nothing is owed, nor on the disk as if it were, or ctx ends.
func (w *Watch) await(ctx context.Context) {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for w.rouse(); w.owed() > 0 || w.ledger.paid.number() > 0; {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

func (w *Watch) tellLeft() {
	if w.o.Kept && !w.markGaps() {
		w.o.Log.Warn("that what this node has noted has gaps could not be noted either: after the next start it goes by that")
	}
	if paid := w.ledger.paid.number(); w.o.Kept && paid > 0 {
		w.o.Log.Warn("what this node has written to the shared history could not be taken off its disk: it is written once more after the next start", "debts", paid)
	}
	left := w.owed()
	switch {
	case left == 0:
	case w.o.Kept:
		w.o.Log.Warn("not all that this node did alone could be written to the shared history: it will be after the next start", "debts", left)
	default:
		w.o.Log.Error("not all that this node did alone could be written to the shared history, and it is lost", "debts", left)
	}
}
