package outage

import (
	"sync"

	"github.com/mailgate/mailgate/cache"
)

// paid is where debts were that are settled and that the disk has not forgotten, as one
// that is full does not. They are forgotten in the order in which they were settled: who
// finds a code on the disk that was used is to find that it was.
type paid struct {
	mu    sync.Mutex
	first []place
}

// A place is where a debt is on the disk.
type place struct{ holder, what string }

func (p *paid) number() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.first)
}

func (p *paid) add(at place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.first = append(p.first, at)
}

// next is the one that is to be forgotten next.
func (p *paid) next() (at place, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.first) == 0 {
		return at, false
	}
	return p.first[0], true
}

func (p *paid) forgotten() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first = p.first[1:]; len(p.first) == 0 {
		p.first = nil
	}
}

// clear has the disk forget what is paid, and reports whether it has forgotten all. It is
// the worker's.
func (l *ledger) clear() (done bool) {
	for {
		at, found := l.paid.next()
		if !found {
			return true
		}
		if l.eraseOld(at) != nil {
			return false
		}
		l.paid.forgotten()
	}
}

// eraseOld has the disk forget what was at a place, unless something new is there.
func (l *ledger) eraseOld(at place) error {
	p := l.page(at.holder)
	p.Lock()
	defer p.Unlock()
	if _, owed := p.at(at.holder, at.what); owed {
		return nil
	}
	return l.erase(at)
}

func (l *ledger) erase(at place) error {
	return l.write(at, cache.Remove[debt]())
}
