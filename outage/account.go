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
	// payRecords takes many admissions there at once, where that can be done.
	payRecords atomic.Pointer[func(ctx context.Context, key string, some []debt) error]
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

func (a *account) holder(key string) string { return holderOf(a.name, key) }

func (a *account) turn(key string) *turn {
	return &a.turns[maphash.String(seed, key)%uint64(len(a.turns))]
}

// fails reports whether a call to the shared history failed and is to be done alone; see goesOn.
func (a *account) fails(ctx context.Context, key string, err error, doubt func(context.Context) error) bool {
	if err == nil {
		a.watch.heard()
		return false
	}
	return a.goesOn(ctx, key, err, doubt)
}

// owes reports whether a call that ends something failed, and the shared history is to be told
// later: that needs no outage, as it admits nothing.
func (a *account) owes(ctx context.Context, key string, err error, doubt func(context.Context) error) bool {
	return a.fails(ctx, key, err, doubt) || err != nil && ctx.Err() == nil && (errors.Is(err, errOwes) || a.watch.unavailable(err))
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

// accountOf finds the account of a holder; none has one that belonged to a rule which has
// since been removed.
func (w *Watch) accountOf(holder string) (a *account, key string) {
	name, key, _ := strings.Cut(holder, "\x00")
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.accounts[name], key
}
