package outage

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mailgate/mailgate/cache"
)

// A ledger is all debts: in memory, to be found at once, and on the node's disk, to
// outlive the process. It forgets none by itself.
type ledger struct {
	disk   shelf
	seed   maphash.Seed
	pages  [64]page
	count  atomic.Int64 // so that whoever owes nothing learns it without a lock
	each   sync.Map     // the same of each account: *atomic.Int64, by name
	bound  bound
	latest atomic.Uint64 // the seq of the last debt
	paid   paid

	expired atomic.Int64 // admissions that were too old before they could be written
}

// A shelf is a ledger's part of the disk.
type shelf interface {
	Update(ctx context.Context, place string, clock func() int64, edit func(d debt, found bool, now int64) cache.Edit[debt]) error
	Close()
}

// A page is the debts of some holders.
type page struct {
	sync.Mutex
	owing map[string]map[string]*debt // by holder, by subject
}

// ever is a clock at which nothing has expired: a debt is dropped by whoever settles it.
func ever() int64 { return math.MinInt64 }

// openLedger reads the debts that are on the disk.
func openLedger(disk *cache.Disk) (*ledger, error) {
	// They are all in memory here, so the map need not remember any.
	m, err := cache.NewMap(disk, "debts", debtCodec{}, cache.Size{Entries: 1, Bytes: 1024})
	if err != nil {
		return nil, fmt.Errorf("opening the debts: %w", err)
	}
	l := &ledger{disk: m, seed: maphash.MakeSeed(), bound: bound{most: mostOwed, tell: func() {}}}
	for i := range l.pages {
		l.pages[i].owing = map[string]map[string]*debt{}
	}
	err = m.Each(context.Background(), ever(), func(place string, d debt) bool {
		holder := strings.TrimSuffix(place, d.what)
		l.keep(l.page(holder), holder, d)
		l.latest.Store(max(l.latest.Load(), d.seq))
		return true
	})
	if err != nil {
		m.Close()
		return nil, fmt.Errorf("opening the debts: %w", err)
	}
	return l, nil
}

// holderOf is whose debts those of an account's key are. No account has a NUL in its name.
func holderOf(account, key string) string { return account + "\x00" + key }

func (l *ledger) page(holder string) *page {
	return &l.pages[maphash.String(l.seed, holder)%uint64(len(l.pages))]
}

// of are a holder's debts, oldest first.
func (l *ledger) of(holder string) []debt {
	p := l.page(holder)
	p.Lock()
	defer p.Unlock()
	all := p.all(holder)
	slices.SortFunc(all, func(a, b debt) int { return cmp.Compare(a.seq, b.seq) })
	return all
}

// left are those of some debts that a holder still has.
func (l *ledger) left(holder string, some []debt) []debt {
	p := l.page(holder)
	p.Lock()
	defer p.Unlock()
	return slices.DeleteFunc(some, func(d debt) bool {
		now, found := p.at(holder, d.what)
		return !found || now != d
	})
}

// all are a holder's debts. The page is held, here and below.
func (p *page) all(holder string) []debt {
	all := make([]debt, 0, len(p.owing[holder]))
	for _, d := range p.owing[holder] {
		all = append(all, *d)
	}
	return all
}

// at is what a holder owes about a subject.
func (p *page) at(holder, what string) (d debt, found bool) {
	if held := p.owing[holder][what]; held != nil {
		return *held, true
	}
	return debt{}, false
}

// number is how many debts a holder has.
func (l *ledger) number(holder string) int {
	if l.count.Load() == 0 {
		return 0
	}
	p := l.page(holder)
	p.Lock()
	defer p.Unlock()
	return len(p.owing[holder])
}

// counted is so many debts of a holder more, or less.
func (l *ledger) counted(holder string, more int64) {
	account, _, _ := strings.Cut(holder, "\x00")
	l.count.Add(more)
	l.countOf(account).Add(more)
}

// countOf is how many debts an account has.
func (l *ledger) countOf(account string) *atomic.Int64 {
	count, found := l.each.Load(account)
	if !found {
		count, _ = l.each.LoadOrStore(account, new(atomic.Int64))
	}
	return count.(*atomic.Int64)
}

// holders are all who owe.
func (l *ledger) holders() (all []string) {
	for i := range l.pages {
		p := &l.pages[i]
		p.Lock()
		all = slices.AppendSeq(all, maps.Keys(p.owing))
		p.Unlock()
	}
	return all
}

// owe notes a debt, on disk before it returns, in place of the one about the same subject.
func (l *ledger) owe(holder string, d debt) error {
	return l.change(holder, d.what, func(debt, bool) (debt, bool) { return d, true })
}

// change lets edit say what is owed about a subject from now on. What is owed stays if edit has
// nothing to say. No other change of the holder's debts comes in between.
func (l *ledger) change(holder, what string, edit func(old debt, found bool) (next debt, owed bool)) error {
	p := l.page(holder)
	p.Lock()
	defer p.Unlock()
	old, found := p.at(holder, what)
	next, owed := edit(old, found)
	if !owed || found && next == old {
		return nil
	}
	return l.put(p, holder, next)
}

// amend has a debt say more, unless another has taken its place. Where the disk does not take
// that, it is so until the process ends.
func (l *ledger) amend(holder string, d debt) {
	p := l.page(holder)
	p.Lock()
	defer p.Unlock()
	if now, found := p.at(holder, d.what); found && now.seq == d.seq && now != d {
		l.keep(p, holder, d)
		_ = l.write(place{holder, d.what}, cache.Put(d, math.MaxInt64))
	}
}

// replace has one debt take the place of all that a holder has, if choose says so of them.
func (l *ledger) replace(holder string, choose func([]debt) (by debt, replaced bool)) error {
	p := l.page(holder)
	p.Lock()
	defer p.Unlock()
	all := p.all(holder)
	by, replaced := choose(all)
	if !replaced {
		return nil
	}
	if err := l.put(p, holder, by); err != nil {
		return err
	}
	for _, d := range all {
		if d.what != by.what {
			l.drop(p, holder, d)
		}
	}
	return nil
}

// settled takes a debt off, unless another has taken its place.
func (l *ledger) settled(holder string, d debt) (off bool) {
	p := l.page(holder)
	p.Lock()
	defer p.Unlock()
	now, found := p.at(holder, d.what)
	if off = found && now.seq == d.seq; off {
		l.drop(p, holder, now)
	}
	return off
}

// put notes a debt, unless there are too many. Its page is held, here and below.
func (l *ledger) put(p *page, holder string, d debt) error {
	if _, found := p.at(holder, d.what); !found && !l.bound.admits(d.step) {
		return fmt.Errorf("noting a debt: %w", errTooMuch)
	}
	d.seq = l.latest.Add(1)
	err := l.write(place{holder, d.what}, cache.Put(d, math.MaxInt64))
	if err != nil {
		return fmt.Errorf("noting a debt: %w", err)
	}
	l.keep(p, holder, d)
	return nil
}

func (l *ledger) keep(p *page, holder string, d debt) {
	if p.owing[holder] == nil {
		p.owing[holder] = map[string]*debt{}
		l.bound.add(ofHolder(holder))
	}
	if old, replaced := p.at(holder, d.what); replaced {
		l.bound.add(-ofDebt(old))
	} else {
		l.counted(holder, 1)
	}
	l.bound.add(ofDebt(d))
	p.owing[holder][d.what] = &d
}

// drop forgets a debt. Where the disk does not, that is tried again later: whoever reads it
// after this process would pay what was paid.
func (l *ledger) drop(p *page, holder string, d debt) {
	delete(p.owing[holder], d.what)
	l.bound.add(-ofDebt(d))
	if len(p.owing[holder]) == 0 {
		delete(p.owing, holder)
		l.bound.add(-ofHolder(holder))
	}
	l.counted(holder, -1)
	at := place{holder, d.what}
	if l.paid.number() > 0 || l.erase(at) != nil {
		l.paid.add(at)
	}
}

// write puts an edit on disk, however long it takes: what is owed or paid is so, whoever
// still waits for it.
func (l *ledger) write(at place, edit cache.Edit[debt]) error {
	return l.disk.Update(context.Background(), at.holder+at.what, ever, func(debt, bool, int64) cache.Edit[debt] { return edit })
}

func (l *ledger) close() { l.disk.Close() }
