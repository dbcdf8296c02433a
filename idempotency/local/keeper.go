// Package local is the idempotency.Keeper of one process.
//
// The record of a name is one value in a cache.Map: on disk before Begin says that a
// request is to be done. So a process that is killed while it does it, and starts again,
// does not do it a second time before the lease has ended, nor after it was finished.
package local

import (
	"context"
	"fmt"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/clock"
	"github.com/mailgate/mailgate/idempotency"
)

// Options say how long to keep things, what to remember in memory, and by which clock.
type Options struct {
	// Terms are how long things are kept; the default is idempotency.DefaultTerms.
	Terms idempotency.Terms
	// Name keeps several keepers on one disk apart, and only one at a time can have it.
	// The default is "idempotency".
	Name string
	// Size is how much is kept in memory; the default is cache.DefaultSize.
	Size cache.Size
	// Now reads the clock; the default is the machine's.
	Now func() int64
}

// A Keeper keeps records on a disk. It implements idempotency.Keeper.
type Keeper struct {
	terms   idempotency.Terms
	records *cache.Map[idempotency.Record]
	now     func() int64
}

// New opens the keeper whose records are on the disk. The disk stays the caller's to
// close, after the keeper.
func New(disk *cache.Disk, o Options) (*Keeper, error) {
	if o.Terms == (idempotency.Terms{}) {
		o.Terms = idempotency.DefaultTerms()
	}
	if o.Name == "" {
		o.Name = "idempotency"
	}
	if o.Size == (cache.Size{}) {
		o.Size = cache.DefaultSize()
	}
	if o.Now == nil {
		o.Now = clock.Now
	}
	if err := o.Terms.Check(); err != nil {
		return nil, fmt.Errorf("opening a keeper of requests: %w", err)
	}
	records, err := cache.NewMap(disk, o.Name, recordCodec{}, o.Size)
	if err != nil {
		return nil, fmt.Errorf("opening a keeper of requests: %w", err)
	}
	return &Keeper{terms: o.Terms, records: records, now: o.Now}, nil
}

// Begin implements idempotency.Keeper.
func (k *Keeper) Begin(ctx context.Context, name idempotency.Name, body idempotency.Fingerprint) (idempotency.Outcome, error) {
	return k.BeginAs(ctx, idempotency.Lease{Name: name, Body: body, Token: idempotency.NewToken()})
}

// BeginAs implements idempotency.Keeper.
func (k *Keeper) BeginAs(ctx context.Context, lease idempotency.Lease) (o idempotency.Outcome, err error) {
	const doing = "beginning a request"
	if err := lease.Check(); err != nil {
		return o, fmt.Errorf("%s: %w", doing, err)
	}
	err = k.update(ctx, doing, lease.Name, func(r idempotency.Record, now int64) cache.Edit[idempotency.Record] {
		var next idempotency.Record
		if next, o = r.Begin(lease, now, k.terms); o.State != idempotency.Started {
			return cache.Keep[idempotency.Record]()
		}
		return cache.Put(next, next.Expires)
	})
	if err != nil {
		return idempotency.Outcome{Lease: lease}, err // it may be on the disk all the same
	}
	return o, nil
}

// Finish implements idempotency.Keeper.
func (k *Keeper) Finish(ctx context.Context, lease idempotency.Lease, answer idempotency.Answer) (kept bool, err error) {
	return k.FinishFor(ctx, lease, answer, k.terms.Keep)
}

// FinishFor is Finish for an answer that is to be kept for so many milliseconds.
func (k *Keeper) FinishFor(ctx context.Context, lease idempotency.Lease, answer idempotency.Answer, keep int64) (kept bool, err error) {
	const doing = "finishing a request"
	if err := lease.Check(); err != nil {
		return false, fmt.Errorf("%s: %w", doing, err)
	}
	if err := answer.Check(); err != nil {
		return false, fmt.Errorf("%s: %w", doing, err)
	}
	err = k.update(ctx, doing, lease.Name, func(r idempotency.Record, now int64) cache.Edit[idempotency.Record] {
		var next idempotency.Record
		if next, kept = r.Finish(lease, answer, now, idempotency.Terms{Keep: keep}); next == r {
			return cache.Keep[idempotency.Record]()
		}
		return cache.Put(next, next.Expires)
	})
	return kept && err == nil, err
}

// Abandon implements idempotency.Keeper.
func (k *Keeper) Abandon(ctx context.Context, lease idempotency.Lease) (freed bool, err error) {
	const doing = "abandoning a request"
	if err := lease.Check(); err != nil {
		return false, fmt.Errorf("%s: %w", doing, err)
	}
	err = k.update(ctx, doing, lease.Name, func(r idempotency.Record, now int64) cache.Edit[idempotency.Record] {
		if _, freed = r.Abandon(lease, now); !freed {
			return cache.Keep[idempotency.Record]()
		}
		return cache.Remove[idempotency.Record]()
	})
	return freed && err == nil, err
}

// Look answers what BeginAs would and begins nothing. There is nothing to say of a request that
// BeginAs would start.
func (k *Keeper) Look(ctx context.Context, lease idempotency.Lease) (o idempotency.Outcome, known bool, err error) {
	const doing = "looking for a request"
	if err := lease.Check(); err != nil {
		return o, false, fmt.Errorf("%s: %w", doing, err)
	}
	if err := ctx.Err(); err != nil {
		return o, false, unavailable(doing, err)
	}
	r, _, now, err := k.records.Get(ctx, lease.Name.Text(), k.now)
	if err != nil {
		return o, false, unavailable(doing, err)
	}
	if _, o = r.Begin(lease, now, k.terms); o.State == idempotency.Started {
		return idempotency.Outcome{}, false, nil
	}
	return o, true, nil
}

// update lets edit replace the record of the name, which is the zero one if there is none
// at the clock that edit is shown.
func (k *Keeper) update(ctx context.Context, doing string, name idempotency.Name, edit func(r idempotency.Record, now int64) cache.Edit[idempotency.Record]) error {
	if err := ctx.Err(); err != nil {
		return unavailable(doing, err)
	}
	return unavailable(doing, k.records.Update(ctx, name.Text(), k.now, func(r idempotency.Record, _ bool, now int64) cache.Edit[idempotency.Record] {
		return edit(r, now)
	}))
}

// Ready says whether a request could be begun now, by a write to the disk. It is made for
// health checks; cache.Disk.Ready says how old an answer may be.
func (k *Keeper) Ready(ctx context.Context) error {
	return unavailable("asking the disk", k.records.Ready(ctx))
}

// Close waits for calls that are under way. Later ones fail.
func (k *Keeper) Close() { k.records.Close() }

// unavailable is the error of a call whose cause this is, and nil if there is none.
func unavailable(doing string, cause error) error {
	if cause == nil {
		return nil
	}
	return idempotency.Unavailable(doing, cause)
}
