// Package cluster is the verify.Book of many processes, in Redis.
//
// The codes of a mailbox are one string: of each code its [verify.Hash] and when it
// expires, and nothing that the code could be read from. Each step is one script, by the
// server's clock, so of any number of processes that bring a right code at once exactly
// one is told so. A wrong guess only reads.
//
// A step whose answer was lost is repeated, and not taken twice: a step that forgets codes
// leaves a receipt behind for a minute, by which its repetition is known. A step that
// comes to Redis when its caller has given up is not taken. A code that is recorded leaves a
// mark until it expires, by which it is known when it is recorded again, whatever has become
// of it. A mailbox that has no codes any more is gone from Redis by itself.
//
// Package redisstore has the connections, and says what a failover can forget: a code
// that was just mailed, or that one was just used. With Options.Confirm neither is
// answered for before replicas have it.
package cluster

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"strconv"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/verify"
)

// name stands in the keys. No limiter has a name with a dot that this could be.
const name = "verify.codes"

// A Book keeps codes in Redis. It implements verify.SharedBook.
type Book struct {
	store  *redisstore.Store
	prefix string
}

// New makes a book that keeps its codes in the store, under keys that begin with
// "mailgate:verify.codes:{}" for the default prefix. It needs no Close; all books of one
// prefix are one.
func New(store *redisstore.Store) *Book {
	store.Use(scripts...)
	return &Book{store: store, prefix: redisstore.Below(store.Prefix(), name)}
}

// Add implements verify.Book.
func (b *Book) Add(ctx context.Context, mailbox string, h verify.Hash, lifetime int64) error {
	const doing = "adding a code"
	if err := verify.CheckLifetime(lifetime); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	_, err := b.step(ctx, doing, mailbox, addScript, string(h[:]), strconv.FormatInt(lifetime, 10))
	return err
}

// Record implements verify.SharedBook.
func (b *Book) Record(ctx context.Context, mailbox string, made verify.Kept) error {
	_, err := b.step(ctx, "recording a code", mailbox, recordScript, string(made.Hash[:]), strconv.FormatInt(made.Expires, 10))
	return err
}

// Check implements verify.Book.
func (b *Book) Check(ctx context.Context, mailbox string, h verify.Hash) (verify.Result, error) {
	const doing = "checking a code"
	letter, err := b.step(ctx, doing, mailbox, checkScript, string(h[:]), newStep())
	if err != nil {
		return verify.Expired, err
	}
	switch letter {
	case done:
		return verify.Correct, nil
	case wrong:
		return verify.Incorrect, nil
	case none:
		return verify.Expired, nil
	}
	return verify.Expired, verify.Unavailable(doing, redisstore.ErrReply)
}

// Remove implements verify.Book. It leaves no receipt: repeated, it finds nothing to do.
func (b *Book) Remove(ctx context.Context, mailbox string, h verify.Hash) error {
	_, err := b.step(ctx, "removing a code", mailbox, removeScript, string(h[:]), "")
	return err
}

// Forget implements verify.Book.
func (b *Book) Forget(ctx context.Context, mailbox string) error {
	return b.ForgetUntil(ctx, mailbox, math.MaxInt64)
}

// ForgetUntil implements verify.SharedBook.
func (b *Book) ForgetUntil(ctx context.Context, mailbox string, expires int64) error {
	_, err := b.step(ctx, "forgetting codes", mailbox, forgetScript, strconv.FormatInt(expires, 10), newStep())
	return err
}

// newStep is what a step is known by when it is repeated.
func newStep() string {
	var step [16]byte
	_, _ = rand.Read(step[:]) // never fails
	return string(step[:])
}

func (b *Book) step(ctx context.Context, doing, mailbox string, script *redisstore.Script, what, with string) (letter byte, err error) {
	if err := throttle.CheckKey(mailbox); err != nil {
		return 0, fmt.Errorf("%s: %w", doing, err)
	}
	call, err := b.store.Begin(ctx, b.prefix+mailbox)
	if err != nil {
		return 0, throttle.Unchanged(verify.Unavailable(doing, err))
	}
	defer call.End()
	a, err := call.Change(script, what, with)
	switch {
	case redisstore.Undone(err):
		return 0, throttle.Unchanged(verify.Unavailable(doing, err))
	case err != nil:
		return 0, verify.Unavailable(doing, err)
	}
	return a.Letter, nil
}
