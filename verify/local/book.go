// Package local is the verify.Book of one process.
//
// The codes of a mailbox are one value in a cache.Map: on disk before Add returns, and
// gone from it before Check says that a code was right. So a restart or a killed process
// neither forgets a code that was mailed nor lets one be used twice.
package local

import (
	"context"
	"fmt"
	"math"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/clock"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/verify"
)

// Options say what to remember in memory, and by which clock.
type Options struct {
	// Name keeps several books on one disk apart, and only one at a time can have it.
	// The default is "codes".
	Name string
	// Size is how much is kept in memory; the default is cache.DefaultSize.
	Size cache.Size
	// Now reads the clock; the default is the machine's.
	Now func() int64
}

// A Book keeps codes on a disk. It implements verify.Book.
type Book struct {
	codes *cache.Map[verify.Codes]
	now   func() int64
}

// New opens the book that is on the disk. The disk stays the caller's to close, after the
// book.
func New(disk *cache.Disk, o Options) (*Book, error) {
	if o.Name == "" {
		o.Name = "codes"
	}
	if o.Size == (cache.Size{}) {
		o.Size = cache.DefaultSize()
	}
	if o.Now == nil {
		o.Now = clock.Now
	}
	codes, err := cache.NewMap(disk, o.Name, codesCodec{}, o.Size)
	if err != nil {
		return nil, fmt.Errorf("opening a book of codes: %w", err)
	}
	return &Book{codes: codes, now: o.Now}, nil
}

// Add implements verify.Book.
func (b *Book) Add(ctx context.Context, mailbox string, h verify.Hash, lifetime int64) error {
	if err := verify.CheckLifetime(lifetime); err != nil {
		return fmt.Errorf("adding a code: %w", err)
	}
	if err := begin(ctx, "adding a code", mailbox); err != nil {
		return err
	}
	err := b.codes.Update(ctx, mailbox, b.now, func(codes verify.Codes, _ bool, now int64) cache.Edit[verify.Codes] {
		next := codes.Add(h, now, now+lifetime)
		return cache.Put(next, next.Expires())
	})
	return unavailable("adding a code", err)
}

// Check implements verify.Book. It writes only when there is a code to be forgotten, so
// wrong guesses cost no disk.
func (b *Book) Check(ctx context.Context, mailbox string, h verify.Hash) (result verify.Result, err error) {
	if err := begin(ctx, "checking a code", mailbox); err != nil {
		return verify.Expired, err
	}
	if _, found, _, err := b.codes.Get(ctx, mailbox, atFirst); err != nil || !found {
		return verify.Expired, unavailable("checking a code", err)
	}
	err = b.codes.Update(ctx, mailbox, b.now, func(codes verify.Codes, _ bool, now int64) cache.Edit[verify.Codes] {
		var rest verify.Codes
		result, rest = codes.Check(h, now)
		return edit(codes, rest)
	})
	if err != nil {
		return verify.Expired, unavailable("checking a code", err)
	}
	return result, nil
}

// atFirst is a clock at the first moment there is: even what has expired by now is found.
func atFirst() int64 { return math.MinInt64 }

// Remove implements verify.Book.
func (b *Book) Remove(ctx context.Context, mailbox string, h verify.Hash) error {
	if err := begin(ctx, "removing a code", mailbox); err != nil {
		return err
	}
	err := b.codes.Update(ctx, mailbox, b.now, func(codes verify.Codes, _ bool, now int64) cache.Edit[verify.Codes] {
		return edit(codes, codes.Remove(h, now))
	})
	return unavailable("removing a code", err)
}

// edit leaves the rest of the codes on record, and writes only if that is a change.
func edit(codes, rest verify.Codes) cache.Edit[verify.Codes] {
	switch len(rest) {
	case 0: // also when all have expired, so that no clock brings them back
		return cache.Remove[verify.Codes]()
	case len(codes):
		return cache.Keep[verify.Codes]()
	}
	return cache.Put(rest, rest.Expires())
}

// Forget implements verify.Book.
func (b *Book) Forget(ctx context.Context, mailbox string) error {
	if err := begin(ctx, "forgetting codes", mailbox); err != nil {
		return err
	}
	err := b.codes.Update(ctx, mailbox, b.now, func(verify.Codes, bool, int64) cache.Edit[verify.Codes] {
		return cache.Remove[verify.Codes]()
	})
	return unavailable("forgetting codes", err)
}

// Ready says whether a code could be added now, by a write to the disk. It is made for
// health checks; cache.Disk.Ready says how old an answer may be.
func (b *Book) Ready(ctx context.Context) error {
	return unavailable("asking the disk", b.codes.Ready(ctx))
}

// Close waits for calls that are under way. Later ones fail.
func (b *Book) Close() { b.codes.Close() }

func begin(ctx context.Context, doing, mailbox string) error {
	if err := throttle.CheckKey(mailbox); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return unavailable(doing, ctx.Err())
}

// unavailable is the error of a call whose cause this is, and nil if there is none.
func unavailable(doing string, cause error) error {
	if cause == nil {
		return nil
	}
	return verify.Unavailable(doing, cause)
}
