package cache

import (
	"context"
	"errors"
	"sync"
)

// Batch returns a context under which an Update returns before its change is durable, and a
// function that waits until all of these changes are. They become durable in the order of their
// Updates, so none is kept without those before it, unless wait returns an error; then each may or
// may not be kept. Call wait once, when all Updates have returned; an Update that comes later waits
// by itself. Without that call the changes become durable within a second.
func Batch(ctx context.Context) (batched context.Context, wait func(context.Context) error) {
	b := &batch{}
	return context.WithValue(ctx, batchKey{}, b), b.wait
}

type batchKey struct{}

// batch is the writes that a caller has not waited for.
type batch struct {
	mu     sync.Mutex
	writes []*write
	closed bool
}

// add leaves the waiting to the batch of a context, and reports whether it has one.
func (w *write) add(ctx context.Context) bool {
	b, ok := ctx.Value(batchKey{}).(*batch)
	if !ok {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.writes = append(b.writes, w)
	}
	return !b.closed
}

func (b *batch) wait(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	var errs []error
	for _, w := range b.writes {
		errs = append(errs, w.wait(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return unavailable("writing a batch", err)
	}
	return nil
}
