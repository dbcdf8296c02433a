package outage

// sweepPauses is how many pauses lie between two looks for what nobody needs any more: a
// minute.
const sweepPauses = 240

// sweep forgets what nobody needs any more, whether there is an outage or not. Before the
// shared history was met its clock is not known, so what is old is not known either.
func (w *Watch) sweep() {
	now := w.o.Now()
	for _, forget := range w.sweeps() {
		forget(now)
	}
	if !w.met.Load() {
		return
	}
	for i := range w.ledger.pages {
		if w.ctx.Err() != nil {
			return
		}
		w.ledger.expire(&w.ledger.pages[i], now)
	}
}

// sweeps are what others have to forget.
func (w *Watch) sweeps() []func(now int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sweepers
}

// oldAtOnce is how many debts are looked for while a page is held.
const oldAtOnce = 1000

// expire forgets the debts of a page that nobody needs any more, one at a time.
func (l *ledger) expire(p *page, now int64) {
	for some := p.old(now); len(some) > 0; some = p.old(now) {
		for _, one := range some {
			if l.settled(one.holder, one.debt) && one.debt.step == record {
				l.expired.Add(1)
			}
		}
	}
}

// An owed debt is one of a holder.
type owed struct {
	holder string
	debt   debt
}

// old are some of the debts that nobody needs any more, or all.
func (p *page) old(now int64) (some []owed) {
	p.Lock()
	defer p.Unlock()
	for holder, debts := range p.owing {
		for _, d := range debts {
			if d.until > now {
				continue
			}
			if some = append(some, owed{holder, *d}); len(some) == oldAtOnce {
				return some
			}
		}
	}
	return some
}
