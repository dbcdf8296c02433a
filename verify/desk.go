package verify

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/mailgate/mailgate/throttle"
)

// A Recipient is whom a code is mailed to, and what for. Mailbox and Address differ when
// several addresses are counted as one mailbox.
type Recipient struct {
	Mailbox string // what its sends are counted by: whose codes and whose guesses these are
	Address string // where the mail goes: what the code proves, and nothing else
	Purpose string // what the code is for, and right for alone; one for none is right where none is named
}

// Options say what a Desk works with.
type Options struct {
	Hasher *Hasher
	Book   Book
	// Guesses counts guesses by mailbox. It should be able to give back, as all limiters
	// by a policy are; [DefaultGuesses] is a policy for it. What it counts alone, which its
	// verdict calls Degraded, is answered by a [LoneBook], or not at all.
	Guesses throttle.Limiter
	// Lifetime is how long a code is right, in milliseconds; the default is
	// DefaultLifetime.
	Lifetime int64
	// Patience is how long the answer to a right code may wait for its guess to be given back.
	// It has to be longer than Guesses wait for their store by themselves: given up on before,
	// they do not learn that they are to go on without it. 2 s.
	Patience time.Duration
	// Random makes the codes; the default is crypto/rand.Reader.
	Random io.Reader
	// Log is told when a guess could not be given back; the default is silence.
	Log *slog.Logger
}

// A Desk hands out codes and checks them. Any number of goroutines may use one.
type Desk struct{ o Options }

// NewDesk checks the options and fills in what was left out.
func NewDesk(o Options) (*Desk, error) {
	if o.Hasher == nil || o.Book == nil || o.Guesses == nil {
		return nil, errors.New("verify: a desk needs a hasher, a book and a limiter for guesses")
	}
	if o.Lifetime == 0 {
		o.Lifetime = DefaultLifetime
	}
	if err := CheckLifetime(o.Lifetime); err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	if o.Patience < 0 {
		return nil, errors.New("verify: Patience is negative")
	}
	o.Patience = cmp.Or(o.Patience, 2*time.Second)
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Desk{o: o}, nil
}

// Lifetime is how many milliseconds a code is right.
func (d *Desk) Lifetime() int64 { return d.o.Lifetime }

// ErrAddress is the kind of a Recipient without an address: nobody could be mailed the code,
// and it would prove nothing.
var ErrAddress = errors.New("a code is for an address, and there is none")

// Issue makes a code, which is right from now on, and returns it to be mailed. It comes
// before the mail: whoever has the mail may be back at once. If the mail is not sent
// after all, TakeBack undoes it.
func (d *Desk) Issue(ctx context.Context, to Recipient) (code string, err error) {
	if to.Address == "" {
		return "", fmt.Errorf("issuing a code: %w", ErrAddress)
	}
	if code, err = d.issue(ctx, to); errors.Is(err, ErrMayBeRight) {
		code, err = d.issue(ctx, to)
	}
	return code, err
}

func (d *Desk) issue(ctx context.Context, to Recipient) (code string, err error) {
	if code, err = NewCode(d.o.Random); err != nil {
		return "", err
	}
	if err := d.o.Book.Add(ctx, to.Mailbox, d.o.Hasher.Hash(to, code), d.o.Lifetime); err != nil {
		return "", fmt.Errorf("issuing a code: %w", err)
	}
	return code, nil
}

// TakeBack makes a code wrong that was issued for a mail that certainly never left: nobody
// knows it, but until it expires it would be one more that a guess may hit.
func (d *Desk) TakeBack(ctx context.Context, from Recipient, code string) error {
	if err := d.o.Book.Remove(ctx, from.Mailbox, d.o.Hasher.Hash(from, code)); err != nil {
		return fmt.Errorf("taking a code back: %w", err)
	}
	return nil
}

// An Outcome is the answer to somebody who has typed a code.
type Outcome struct {
	Result Result
	// AttemptsLeft is how many more guesses there are now. It is 0 but for Incorrect.
	AttemptsLeft int
	// Guesses is the verdict on the guess itself: with Spent it says how long to wait, or
	// less if one that is being looked at is given back. With the other results it is from
	// before a guess was given back.
	Guesses throttle.Verdict
}

// Verify checks what somebody typed. A text that is no code is [ErrCode] and costs no
// guess, since it could not have been right.
//
// An error is no answer. The guess then stays spent, since the code may have been looked
// at; and if it was right it may have been forgotten, and a new one is needed.
func (d *Desk) Verify(ctx context.Context, from Recipient, typed string) (Outcome, error) {
	code, err := ParseCode(typed)
	if err != nil {
		return Outcome{}, err
	}
	guess := throttle.NewID()
	verdict, err := d.o.Guesses.Take(ctx, from.Mailbox, guess)
	if err != nil {
		return Outcome{}, fmt.Errorf("counting a guess: %w", err)
	}
	if !verdict.Allowed {
		return Outcome{Result: Spent, Guesses: verdict}, nil
	}
	result, err := d.check(ctx, from.Mailbox, d.o.Hasher.Hash(from, code), verdict.Degraded)
	if err != nil {
		return Outcome{}, err
	}
	if result == Incorrect {
		return Outcome{Result: Incorrect, AttemptsLeft: attempts(verdict), Guesses: verdict}, nil
	}
	d.giveBack(ctx, from.Mailbox, guess)
	return Outcome{Result: result, Guesses: verdict}, nil
}

// check looks at a code whose guess was counted. One that was counted alone has only the
// codes of this process to be right by: a history can refuse to count and still be read.
func (d *Desk) check(ctx context.Context, mailbox string, h Hash, alone bool) (Result, error) {
	if !alone {
		return d.o.Book.Check(ctx, mailbox, h)
	}
	if book, ok := d.o.Book.(LoneBook); ok {
		return book.CheckAlone(ctx, mailbox, h)
	}
	return Expired, Unavailable("checking a code", errAlone)
}

// errAlone is why a code is not looked at.
var errAlone = errors.New("its guess was counted by this process alone")

// Forget forgets all codes of the mailbox. It brings no new guesses; the limiter's Reset
// does.
func (d *Desk) Forget(ctx context.Context, mailbox string) error {
	return d.o.Book.Forget(ctx, mailbox)
}

// giveBack gives back a guess even when the caller has gone. That it fails takes nothing
// from the answer: the code was right, and has been forgotten for it.
func (d *Desk) giveBack(ctx context.Context, mailbox string, guess throttle.ID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.o.Patience)
	defer cancel()
	if _, err := d.o.Guesses.Release(ctx, mailbox, guess); err != nil {
		d.o.Log.Warn("a guess could not be given back", "error", err)
	}
}

// attempts is how many guesses the fullest tier leaves.
func attempts(v throttle.Verdict) int {
	left := 0
	for i, tier := range v.Tiers() {
		if i == 0 || tier.Remaining < left {
			left = tier.Remaining
		}
	}
	return left
}

// DefaultGuesses is how often codes of one mailbox may be guessed.
func DefaultGuesses() throttle.Policy {
	policy, err := throttle.NewPolicy(
		throttle.Tier{Name: "ten-minutes", Limit: 5, Window: 10 * 60 * 1000},
		throttle.Tier{Name: "day", Limit: 20, Window: 24 * 60 * 60 * 1000},
	)
	if err != nil {
		panic("verify: the default policy for guesses: " + err.Error())
	}
	return policy
}
