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
	"time"

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

func (a *account) turn(key string) *turn {
	return &a.turns[maphash.String(seed, key)%uint64(len(a.turns))]
}

// fails reports whether a call to the shared history failed and is to be done alone. Doubt is
// one that changes nothing, for the same key: it has to succeed before the outage is over.
func (a *account) fails(ctx context.Context, err error, doubt func(context.Context) error) bool {
	if err == nil {
		a.watch.heard()
		return false
	}
	return a.watch.goesOn(ctx, err, doubt)
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

// fewDebts is how many debts of a key are settled while somebody waits for an answer, and
// fewAtOnce how many where they can be paid at once.
const (
	fewDebts  = 16
	fewAtOnce = 100
)

// settleWait is how long somebody waits while others settle.
const settleWait = 250 * time.Millisecond

// settled has the shared history told all about a key. An error means that it must not be
// asked.
func (a *account) settled(ctx context.Context, key string) error {
	owed := a.watch.ledger.number(holderOf(a.name, key))
	if owed == 0 {
		return nil
	}
	// Before the shared history was met its clock is not known, so not what is old either.
	if !a.watch.met.Load() || owed > a.few() || !a.waits(ctx, key) {
		return errOwes
	}
	defer a.end(key)
	return a.payAll(ctx, key, a.watch.ledger.of(holderOf(a.name, key)))
}

func (a *account) few() int {
	if a.payRecords.Load() != nil {
		return fewAtOnce
	}
	return fewDebts
}

// waits makes the caller the one who settles a key, or says that somebody else is. While the
// shared history answers it is worth to wait for that one: who does not is admitted alone,
// and of a busy key there would always be somebody who owes.
func (a *account) waits(ctx context.Context, key string) bool {
	if !a.watch.answers.Load() {
		return a.begin(key)
	}
	enough := time.NewTimer(settleWait)
	defer enough.Stop()
	select {
	case a.place(key) <- struct{}{}:
		return true
	case <-enough.C:
	case <-ctx.Done():
	}
	return false
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

// settle pays the debts that a key has now, a few at a time, so that callers whose turn it
// is come in between.
func (a *account) settle(ctx context.Context, key string) error {
	for some := range slices.Chunk(a.watch.ledger.of(holderOf(a.name, key)), a.few()) {
		if err := a.settleSome(ctx, key, some); err != nil {
			return err
		}
	}
	return nil
}

// settleSome pays what nobody else has paid of some debts, when whoever is at it has finished.
func (a *account) settleSome(ctx context.Context, key string, some []debt) error {
	select {
	case a.place(key) <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer a.end(key)
	return a.payAll(ctx, key, a.watch.ledger.left(holderOf(a.name, key), some))
}

// atOnce is how many steps are under way at once, for one key and for all keys each.
const atOnce = 8

// payAll pays debts, oldest first, and stops where one cannot be paid: many at once, or else a
// few where their order is nothing to the result.
func (a *account) payAll(ctx context.Context, key string, debts []debt) error {
	for len(debts) > 0 {
		number, err := a.payRun(ctx, key, debts)
		if number == 0 && err == nil {
			number, err = a.payFew(ctx, key, debts)
		}
		if err != nil {
			return err
		}
		debts = debts[number:]
	}
	return nil
}

// payFew pays the first of some debts, and how many they are.
func (a *account) payFew(ctx context.Context, key string, debts []debt) (number int, err error) {
	number = min(atOnce, len(debts))
	if a.inOrder {
		number = 1
	}
	errs := make([]error, number)
	var done sync.WaitGroup
	for i, d := range debts[:number] {
		done.Go(func() { errs[i] = a.payOne(ctx, key, d) })
	}
	done.Wait()
	return number, errors.Join(errs...)
}

// payRun pays the admissions that some debts begin with all at once, and returns how many
// they are: none where that cannot be done, or the shared history does not take them so.
func (a *account) payRun(ctx context.Context, key string, debts []debt) (number int, err error) {
	pay := a.payRecords.Load()
	if pay == nil {
		return 0, nil
	}
	for number < min(fewAtOnce, len(debts)) && debts[number].step == record && debts[number].until > a.watch.o.Now() {
		number++
	}
	if number < 2 {
		return 0, nil
	}
	if err := (*pay)(ctx, key, debts[:number]); err != nil {
		if ctx.Err() != nil || a.watch.isAway(err) {
			return 0, err
		}
		return 0, nil
	}
	a.watch.written.Add(int64(number))
	for _, d := range debts[:number] {
		a.paid(key, d)
	}
	return number, nil
}

// payOne pays a debt and takes it off.
func (a *account) payOne(ctx context.Context, key string, d debt) error {
	w := a.watch
	old := d.until <= w.o.Now()
	if !old {
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
	if a.paid(key, d) && old && d.step == record {
		w.ledger.expired.Add(1)
	}
	return nil
}

// paid takes a debt off, unless another has taken its place.
func (a *account) paid(key string, d debt) (off bool) {
	off = a.watch.ledger.settled(holderOf(a.name, key), d)
	if a.watch.ledger.paid.number() > 0 {
		a.watch.rouse()
	}
	return off
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
