package outage

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"sync"
	"time"
)

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
	owed := a.watch.ledger.number(a.holder(key))
	if owed == 0 {
		return nil
	}
	// Before the shared history was met its clock is not known, so not what is old either.
	if !a.watch.met.Load() || owed > a.few() || !a.waits(ctx, key) {
		return errOwes
	}
	defer a.end(key)
	return a.payAll(ctx, key, a.watch.ledger.of(a.holder(key)))
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
	for some := range slices.Chunk(a.watch.ledger.of(a.holder(key)), a.few()) {
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
	return a.payAll(ctx, key, a.watch.ledger.left(a.holder(key), some))
}

// atOnce is how many steps are under way at once, for one key and for all keys each.
const atOnce = 8

// payAll pays debts, oldest first, and stops at one that cannot be paid. It pays many in one
// step where it can, or else a few side by side where their order does not matter.
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
		if ctx.Err() != nil || a.watch.unavailable(err) {
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
		case err != nil && (errors.Is(err, errLater) || ctx.Err() != nil || w.unavailable(err)):
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
	off = a.watch.ledger.settled(a.holder(key), d)
	if a.watch.ledger.paid.number() > 0 {
		a.watch.rouse()
	}
	return off
}

// errLater is why a debt cannot be paid yet, though the shared history answers.
var errLater = errors.New("somebody else is at it")
