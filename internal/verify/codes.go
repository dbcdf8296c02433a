package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/secret"
	"github.com/mailgate/mailgate/throttle"
)

// Recipient is where a code is emailed to, and what for. Mailbox and Address differ when several
// addresses are counted as one mailbox.
type Recipient struct {
	Mailbox string // what its sends are counted by: it has the codes and the guesses
	Address string // where the email goes: what the code proves, and nothing else
	Purpose string // what the code is for; a code for one purpose is wrong for any other
}

// Options say what Codes works with.
type Options struct {
	Store keyed.Store
	// Secret makes the hashes of codes. Nodes that share records need the same one; another one
	// invalidates the codes that are on their way.
	Secret []byte
	// Guesses counts guesses by mailbox. It should use a throttle.Policy, so that a guess can be
	// refunded by its id.
	Guesses *throttle.Limiter
	// Lifetime is how long a code is valid, in milliseconds. The default is ten minutes.
	Lifetime int64
	// Log receives a line when a guess could not be refunded. The default is silence.
	Log *slog.Logger
}

// Codes issues and checks codes. It may be used by any number of goroutines.
//
// A mailbox is any text of 1 to 1024 bytes; any other is throttle.ErrKey. Every failure to read or
// write is throttle.ErrUnavailable: the change may or may not have been made. Errors name neither
// mailbox nor code.
type Codes struct {
	store    keyed.Store
	mac      *secret.MAC
	guesses  *throttle.Limiter
	lifetime int64
	log      *slog.Logger
}

// New returns the Codes of these options. It fails if the secret is too short.
func New(o Options) (*Codes, error) {
	key, err := secret.Key(o.Secret, hashPurpose)
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Codes{o.Store, secret.NewMAC(key), o.Guesses, cmp.Or(o.Lifetime, 10*60*1000), o.Log}, nil
}

// Lifetime returns how many milliseconds a code is valid.
func (c *Codes) Lifetime() int64 { return c.lifetime }

// Issue makes a code, which is valid from now on, and returns it to be emailed. Call it before
// sending, since the visitor may be quick. If the email is not sent after all, Revoke undoes it.
func (c *Codes) Issue(ctx context.Context, to Recipient, notes ...Note) (code string, err error) {
	code = NewCode()
	h := hashOf(c.mac, to, code)
	_, err = c.update(ctx, "issuing a code", to.Mailbox, func(r record, now int64) record {
		return r.note(notes, now).issue(h, now, c.lifetime)
	})
	if err != nil {
		return "", err
	}
	return code, nil
}

// Revoke invalidates a code whose email certainly never left, and forgets the notes of the send. Otherwise it would
// be one more code for guesses to hit until it expires.
func (c *Codes) Revoke(ctx context.Context, from Recipient, code string, send throttle.ID) error {
	h := hashOf(c.mac, from, code)
	_, err := c.update(ctx, "revoking a code", from.Mailbox, func(r record, now int64) record { return r.revoke(h, send, now) })
	return err
}

// Note keeps a note about a mailbox whose code the caller made.
func (c *Codes) Note(ctx context.Context, mailbox string, note Note) error {
	_, err := c.update(ctx, "noting a send", mailbox, func(r record, now int64) record { return r.note([]Note{note}, now) })
	return err
}

// Report is told by a caller that a code of its own was right, and returns its notes about the mailbox. While the
// shared records are unavailable it finds what this node noted alone, or else is throttle.ErrUnavailable.
func (c *Codes) Report(ctx context.Context, mailbox, whose string) (notes []Note, err error) {
	const doing = "reporting a right code"
	degraded, err := c.update(ctx, doing, mailbox, func(r record, now int64) (next record) {
		next, notes = r.report(whose, now)
		return next
	})
	if err == nil && degraded && len(notes) == 0 {
		err = throttle.Unavailable(doing, errDegraded)
	}
	if err != nil {
		return nil, err // the notes may still be there
	}
	return notes, nil
}

// Result is the result of a check.
type Result int8

// The results of Verify.
const (
	Expired   Result = iota // no code of the mailbox is valid
	Incorrect               // at least one is, and this is none of them
	Correct                 // this was one, and all codes of the mailbox are used up now
	Spent                   // the guesses are spent; the code was not checked
)

// Outcome is the answer to a typed code.
type Outcome struct {
	Result Result
	// GuessesLeft is how many more guesses there are. It is set with Incorrect.
	GuessesLeft int
	// Guesses is the verdict on the guess itself. With Spent it says how long to wait; less, if
	// a guess that is in progress is refunded. With the other results it is from before this
	// guess was refunded.
	Guesses throttle.Verdict
	// Notes are those about the mailbox, with Correct, and with an error if the code is certainly used up. No other
	// call returns them.
	Notes []Note
}

// errDegraded is why a node that decides by its own records gives no answer.
var errDegraded = errors.New("other nodes cannot be asked whether the code was used")

// refundTimeout bounds how long the answer to a right code waits for the refund of its
// guess.
const refundTimeout = 2 * time.Second

// Verify checks what was typed. A text that is no code is [ErrCode] and costs no guess, since
// it could not have been right. After any other error the guess stays charged, and if the code
// was right it may have been used up.
//
// While the shared records of the guess or of the codes are unavailable, only a code that this node
// issued alone can be Correct. Everything else is throttle.ErrUnavailable, right or wrong:
// each node has guesses of its own, and the code may have been used elsewhere.
func (c *Codes) Verify(ctx context.Context, from Recipient, typed string) (Outcome, error) {
	code, err := ParseCode(typed)
	if err != nil {
		return Outcome{}, err
	}
	verdict, err := c.guesses.Take(ctx, from.Mailbox)
	if err != nil {
		return Outcome{}, fmt.Errorf("counting a guess: %w", err)
	}
	if !verdict.Allowed {
		return Outcome{Result: Spent, Guesses: verdict}, nil
	}
	o := Outcome{Guesses: verdict}
	h := hashOf(c.mac, from, code)
	const doing = "checking a code"
	degraded, err := c.update(ctx, doing, from.Mailbox, func(r record, now int64) (next record) {
		next, o.Result = r.verify(h, now)
		if o.Notes = nil; o.Result == Correct {
			o.Notes = makeRecord(0, nil, r.notes, now).notes
		}
		return next
	})
	if err != nil {
		return Outcome{}, err // the code may still be valid, and would return the notes again
	}
	issuedHere := degraded && o.Result == Correct
	if (degraded || verdict.Degraded) && !issuedHere {
		return Outcome{Notes: o.Notes}, throttle.Unavailable(doing, errDegraded)
	}
	if o.Result == Incorrect {
		o.GuessesLeft = verdict.Remaining()
		return o, nil
	}
	c.refund(ctx, from.Mailbox, verdict.Admission)
	return o, nil
}

// refund refunds a guess, also when the caller has gone. If that fails the answer is
// still right, and one guess is lost.
func (c *Codes) refund(ctx context.Context, mailbox string, guess throttle.Admission) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refundTimeout)
	defer cancel()
	if _, err := c.guesses.Release(ctx, mailbox, guess); err != nil {
		c.log.Warn("a guess could not be refunded", "error", err)
	}
}

// update lets step replace the record of the mailbox.
func (c *Codes) update(ctx context.Context, doing, mailbox string, step func(r record, now int64) record) (degraded bool, err error) {
	if err = throttle.CheckKey(mailbox); err == nil {
		degraded, err = keyed.Change(ctx, c.store, mailbox, parse, func(r record, now int64) ([]byte, int64) {
			next := step(r, now)
			return next.encode(), next.expires()
		})
	}
	if err != nil {
		return degraded, fmt.Errorf("%s: %w", doing, err)
	}
	return degraded, nil
}
