package outage

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mailgate/mailgate/throttle"
)

// An account is what one part of the node owes the shared history. Parts of one name have
// one account, as they share what is on record.
type account struct {
	watch *Watch
	name  string

	// pay takes one step there. It may be that of any part of the name.
	pay atomic.Pointer[func(ctx context.Context, key string, d debt) error]
	// inOrder has a key's debts paid one after the other.
	inOrder bool

	noting     atomic.Pointer[throttle.Recorder] // the own history, of what admits
	distrusted atomic.Int64                      // until when that may lack an admission
	marked     int64                             // what of that is on disk

	gap     sync.Mutex
	missing map[missing]counts // what it lacks
	lost    int64              // until when something counts that it lacks and nobody remembers

	turns    [64]turn
	settling [64]chan struct{} // one settler for a key at a time
}

// A turn is whose turn it is to decide alone, and how often somebody has.
type turn struct {
	sync.Mutex
	taken atomic.Uint64
	_     [40]byte // a cache line each
}

var seed = maphash.MakeSeed()

// account finds the account of a name, or opens it. From now on pay is how it pays.
func (w *Watch) account(name string, inOrder bool, pay func(ctx context.Context, key string, d debt) error) *account {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.accounts[name]
	if a == nil {
		found := w.gaps.found[name]
		a = &account{watch: w, name: name, inOrder: inOrder, marked: found, lost: found, missing: map[missing]counts{}}
		a.distrusted.Store(found)
		for i := range a.settling {
			a.settling[i] = make(chan struct{}, 1)
		}
		w.accounts[name] = a
		if w.ledger.countOf(name).Load() > 0 { // of a rule that is back
			w.rouse()
		}
	}
	a.pay.Store(&pay)
	return a
}

// parts are all accounts.
func (w *Watch) parts() []*account {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.accounts))
}

func (a *account) turn(key string) *turn {
	return &a.turns[maphash.String(seed, key)%uint64(len(a.turns))]
}

// fails reports whether a call to the shared history failed and is to be done alone.
func (a *account) fails(ctx context.Context, err error) bool {
	if err == nil {
		a.watch.heard()
		return false
	}
	return a.watch.goesOn(ctx, err, nil)
}

// both is why a call came to nothing together, and then alone. It is proof that nothing was
// changed only where both are.
func both(together, alone error) error {
	err := fmt.Errorf("%w; and alone: %w", together, alone)
	if errors.Is(together, throttle.ErrUnchanged) && errors.Is(alone, throttle.ErrUnchanged) {
		return err
	}
	return throttle.Unproven(err)
}

// errOwes is why the shared history is not asked about a key: it does not know all.
var errOwes = errors.New("what this node did alone is still being written")

// fewDebts is how many debts of a key are settled while somebody waits for an answer.
const fewDebts = 16

// settled has the shared history told all about a key. An error means that it must not be
// asked.
func (a *account) settled(ctx context.Context, key string) error {
	owed := a.watch.ledger.number(holderOf(a.name, key))
	if owed == 0 {
		return nil
	}
	// Before the shared history was met its clock is not known, so not what is old either.
	if !a.watch.met.Load() || owed > fewDebts || !a.begin(key) {
		return errOwes
	}
	defer a.end(key)
	return a.settle(ctx, key)
}

// begin makes the caller the one who settles a key, or says that somebody else is.
func (a *account) begin(key string) bool {
	select {
	case a.place(key) <- struct{}{}:
		return true
	default:
		return false
	}
}

func (a *account) end(key string) { <-a.place(key) }

func (a *account) place(key string) chan struct{} {
	return a.settling[maphash.String(seed, key)%uint64(len(a.settling))]
}

// settle pays all debts of a key, also those that come meanwhile.
func (a *account) settle(ctx context.Context, key string) error {
	holder := holderOf(a.name, key)
	for {
		debts := a.watch.ledger.of(holder)
		if len(debts) == 0 {
			return nil
		}
		if err := a.payAll(ctx, key, debts); err != nil {
			return err
		}
	}
}

// atOnce is how many steps are under way at once, for one key and for all keys each.
const atOnce = 8

// payAll pays debts, a few at once where their order is nothing to the result, and stops
// where one cannot be paid.
func (a *account) payAll(ctx context.Context, key string, debts []debt) error {
	width := atOnce
	if a.inOrder {
		width = 1
	}
	for len(debts) > 0 {
		some := debts[:min(width, len(debts))]
		debts = debts[len(some):]
		errs := make([]error, len(some))
		var done sync.WaitGroup
		for i, d := range some {
			done.Go(func() { errs[i] = a.payOne(ctx, key, d) })
		}
		done.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

// payOne pays a debt and takes it off.
func (a *account) payOne(ctx context.Context, key string, d debt) error {
	w := a.watch
	if d.until > w.o.Now() {
		err := (*a.pay.Load())(ctx, key, d)
		switch {
		case err == nil && d.step == record:
			w.written.Add(1)
		case err != nil && (errors.Is(err, errLater) || ctx.Err() != nil || w.isAway(err)):
			return err
		case err != nil: // it never will be paid
			w.o.Log.Warn("what this node did alone cannot be written to the shared history", "what", a.name, "cause", err)
		}
	}
	w.ledger.settled(holderOf(a.name, key), d)
	if w.ledger.paid.number() > 0 {
		w.rouse()
	}
	return nil
}

// errLater is why a debt cannot be paid yet, though the shared history answers.
var errLater = errors.New("somebody else is at it")

// accountOf finds the account of a holder; none has one that belonged to a rule which has
// since been removed.
func (w *Watch) accountOf(holder string) (a *account, key string) {
	name, key, _ := strings.Cut(holder, "\x00")
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.accounts[name], key
}
