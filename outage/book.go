package outage

import (
	"cmp"
	"context"
	"fmt"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/verify"
)

// A Book keeps codes in the shared book. Those that are made while it is away this node
// keeps itself, as what it owes. It implements verify.LoneBook.
type Book struct {
	*account
	shared verify.SharedBook
}

// Book makes one.
func (w *Watch) Book(shared verify.SharedBook) *Book {
	b := &Book{shared: shared}
	b.account = w.account(".codes", true, b.pay)
	return b
}

// pay tells the shared book what was done alone.
func (b *Book) pay(ctx context.Context, mailbox string, d debt) error {
	switch d.step {
	case add:
		return b.tell(ctx, mailbox, d)
	case remove:
		return b.shared.Remove(ctx, mailbox, verify.Hash([]byte(d.what)))
	}
	return b.shared.ForgetUntil(ctx, mailbox, d.at)
}

// tell tells the shared book of a code. It alone answers for that code from now on, heard or
// not, unless it certainly was not told.
func (b *Book) tell(ctx context.Context, mailbox string, d debt) error {
	telling := d
	telling.more = beingTold
	b.watch.ledger.amend(b.holder(mailbox), telling)
	err := b.shared.Record(ctx, mailbox, verify.Kept{Hash: verify.Hash([]byte(d.what)), Expires: d.at})
	if b.watch.undone(err) {
		b.watch.ledger.amend(b.holder(mailbox), d)
	}
	return err
}

// Add makes the code right, here if not there. The shared book is told all before: perhaps it
// is yet to forget the codes of the mailbox, and would forget this one with them. A code that it
// may have taken unheard is not kept here as well: used there, it would be right once more.
func (b *Book) Add(ctx context.Context, mailbox string, h verify.Hash, lifetime int64) error {
	const doing = "adding a code"
	if err := verify.CheckLifetime(lifetime); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	err := b.told(ctx, doing, mailbox)
	asked := err == nil
	if asked {
		err = b.shared.Add(ctx, mailbox, h, lifetime)
	}
	alone := b.fails(ctx, mailbox, err, b.doubt(mailbox))
	if asked && b.watch.unavailable(err) && !b.watch.undone(err) && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", verify.ErrMayBeRight, cmp.Or(b.takeBack(mailbox, h, err), err))
	}
	if !alone {
		return err
	}
	expires := b.watch.o.Now() + lifetime
	return b.instead(mailbox, debt{step: add, what: string(h[:]), at: expires, until: expires}, err)
}

// instead notes a step that the shared book could not take.
func (b *Book) instead(mailbox string, d debt, cause error) error {
	if err := b.owe(mailbox, d); err != nil {
		return both(cause, err)
	}
	return nil
}

// told has the shared book told all about a mailbox before it is asked.
func (b *Book) told(ctx context.Context, doing, mailbox string) error {
	if err := b.settled(ctx, mailbox); err != nil {
		return verify.Unavailable(doing, err)
	}
	return nil
}

// Check asks the shared book. While it is away a code is right that was made here meanwhile,
// unless the shared book may have been told of it; of any other nobody knows, which is an error.
func (b *Book) Check(ctx context.Context, mailbox string, h verify.Hash) (result verify.Result, err error) {
	if err = b.told(ctx, "checking a code", mailbox); err == nil {
		result, err = b.shared.Check(ctx, mailbox, h)
	}
	if !b.fails(ctx, mailbox, err, b.doubt(mailbox)) {
		return result, err
	}
	return b.checkOwn(mailbox, h, err)
}

// CheckAlone asks nobody else, though the shared book may well answer: one that takes no
// writes can be read.
func (b *Book) CheckAlone(ctx context.Context, mailbox string, h verify.Hash) (verify.Result, error) {
	const doing = "checking a code"
	if err := throttle.CheckKey(mailbox); err != nil {
		return verify.Expired, fmt.Errorf("%s: %w", doing, err)
	}
	if err := ctx.Err(); err != nil {
		return verify.Expired, verify.Unavailable(doing, err)
	}
	return b.checkOwn(mailbox, h, verify.Unavailable(doing, b.watch.cause()))
}

// checkOwn says that a code is right which was made here and nobody was told of, and of any
// other what keeps it from being known.
func (b *Book) checkOwn(mailbox string, h verify.Hash, cause error) (verify.Result, error) {
	correct, err := b.takeOwn(mailbox, h)
	switch {
	case err != nil:
		return verify.Expired, both(cause, err)
	case correct:
		return verify.Correct, nil
	}
	return verify.Expired, cause
}

// takeOwn looks among the codes that were made here, and forgets them all if this is one of
// them. The shared book is to forget what was added there before the last of them, perhaps
// unheard, and none that others have mailed since. While it is being told of them it alone
// answers for them, and where it may have been, afterwards.
func (b *Book) takeOwn(mailbox string, h verify.Hash) (correct bool, err error) {
	if !b.begin(mailbox) {
		return false, nil
	}
	defer b.end(mailbox)
	now := b.watch.o.Now()
	used := func(owed []debt) (forgetting debt, right bool) {
		var codes verify.Codes
		for _, d := range owed {
			if d.step == add && d.more != beingTold {
				codes = codes.Add(verify.Hash([]byte(d.what)), now, d.at)
			}
		}
		result, _ := codes.Check(h, now)
		correct = result == verify.Correct
		return debt{step: forget, at: codes.Expires(), until: codes.Expires()}, correct
	}
	err = b.watch.ledger.replace(b.holder(mailbox), used)
	return correct && err == nil, err
}

// doubt asks for what changes nothing: to remove a code that nobody has made.
func (b *Book) doubt(mailbox string) func(context.Context) error {
	return func(ctx context.Context) error { return b.shared.Remove(ctx, mailbox, verify.Hash{}) }
}

// Remove forgets one code, whose mail never left.
func (b *Book) Remove(ctx context.Context, mailbox string, h verify.Hash) error {
	err := b.told(ctx, "removing a code", mailbox)
	if err == nil {
		err = b.shared.Remove(ctx, mailbox, h)
	}
	if !b.owes(ctx, mailbox, err, b.doubt(mailbox)) {
		return err
	}
	return b.takeBack(mailbox, h, err)
}

// takeBack has the shared book forget a code when it can be asked again.
func (b *Book) takeBack(mailbox string, h verify.Hash, cause error) error {
	return b.instead(mailbox, debt{step: remove, what: string(h[:]), until: b.watch.o.Now() + verify.MaxLifetime}, cause)
}

// Forget forgets all codes of the mailbox, and needs the shared book for it.
func (b *Book) Forget(ctx context.Context, mailbox string) error {
	const doing = "forgetting codes"
	if err := throttle.CheckKey(mailbox); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if err := b.told(ctx, doing, mailbox); err != nil {
		return err
	}
	return b.shared.Forget(ctx, mailbox)
}
