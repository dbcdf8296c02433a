package outage

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/mailgate/mailgate/idempotency"
)

// An OwnKeeper keeps the node's own records of requests.
type OwnKeeper interface {
	idempotency.Keeper
	// Knows reports whether there is a record of the name.
	Knows(ctx context.Context, name idempotency.Name) (bool, error)
}

// A Keeper keeps records of requests with the shared keeper. Those that are begun while it
// is away this node keeps, and answers for until they end, also when it is back. It
// implements idempotency.Keeper.
type Keeper struct {
	*account
	shared idempotency.Keeper
	own    OwnKeeper
	terms  idempotency.Terms
	until  atomic.Int64 // from when on there is nothing here any more
}

// Keeper makes one of a pair with these terms. Its name tells it from the node's others.
func (w *Watch) Keeper(name string, terms idempotency.Terms, shared idempotency.Keeper, own OwnKeeper) *Keeper {
	k := &Keeper{shared: shared, own: own, terms: terms}
	k.account = w.account("."+name, true, k.pay)
	if w.o.Kept { // by whoever ran here before
		k.keeps()
	}
	return k
}

// keeps takes note that there is something here from now on.
func (k *Keeper) keeps() { k.until.Store(k.watch.o.Now() + k.terms.Lease + k.terms.Keep) }

// mine reports whether a request is this node's own.
func (k *Keeper) mine(ctx context.Context, name idempotency.Name) (bool, error) {
	if k.until.Load() <= k.watch.o.Now() {
		return false, nil
	}
	return k.own.Knows(ctx, name)
}

// Begin asks whether a request is to be done.
func (k *Keeper) Begin(ctx context.Context, name idempotency.Name, body idempotency.Fingerprint) (o idempotency.Outcome, err error) {
	mine, err := k.mine(ctx, name)
	switch {
	case err != nil:
		return o, err
	case mine:
		return k.own.Begin(ctx, name, body)
	}
	if err = k.settled(ctx, name.Text()); err == nil {
		o, err = k.shared.Begin(ctx, name, body)
	} else {
		err = fmt.Errorf("beginning a request: %w: %w", idempotency.ErrUnavailable, err)
	}
	if !k.fails(ctx, err) {
		return o, err
	}
	k.keeps()
	return k.own.Begin(ctx, name, body)
}

// fails reports whether a call failed and is to be done alone.
func (k *Keeper) fails(ctx context.Context, err error) bool {
	if err == nil {
		k.watch.heard()
		return false
	}
	return k.watch.goesOn(ctx, err, nil)
}

// Finish keeps the answer: where the request was begun, or here until it can be kept there.
func (k *Keeper) Finish(ctx context.Context, lease idempotency.Lease, a idempotency.Answer) (kept bool, err error) {
	step := answer
	mine, err := k.mine(ctx, lease.Name)
	if err != nil {
		return false, err
	}
	if !mine {
		kept, err = k.shared.Finish(ctx, lease, a)
		if !k.fails(ctx, err) {
			return kept, err
		}
		step = finish
		k.keeps()
	}
	if kept, err = k.own.Finish(ctx, lease, a); err != nil || !kept {
		return kept, err
	}
	more := idempotency.AppendAnswer(append([]byte(nil), lease.Body[:]...), a)
	d := debt{step: step, what: string(lease.Token[:]), until: k.watch.o.Now() + k.terms.Keep, more: string(more)}
	return true, k.note("finishing a request", lease.Name, d)
}

// Abandon frees the name.
func (k *Keeper) Abandon(ctx context.Context, lease idempotency.Lease) (freed bool, err error) {
	mine, err := k.mine(ctx, lease.Name)
	if err != nil {
		return false, err
	}
	if mine {
		return k.own.Abandon(ctx, lease)
	}
	freed, err = k.shared.Abandon(ctx, lease)
	if !k.fails(ctx, err) {
		return freed, err
	}
	d := debt{step: abandon, what: string(lease.Token[:]), until: k.watch.o.Now() + k.terms.Lease, more: string(lease.Body[:])}
	return true, k.note("abandoning a request", lease.Name, d)
}

func (k *Keeper) note(doing string, name idempotency.Name, d debt) error {
	if err := k.owe(name.Text(), d); err != nil {
		return fmt.Errorf("%s: %w: %w", doing, idempotency.ErrUnavailable, err)
	}
	return nil
}

var errName = errors.New("not the name of a request")

// pay tells the shared keeper how a request ended. One that was begun here is begun there
// first: where another node has done it meanwhile, that one's answer stays there, and this
// node gives its own for as long as it keeps it.
func (k *Keeper) pay(ctx context.Context, key string, d debt) error {
	name, ok := parseName(key)
	if !ok || len(d.what) != len(idempotency.Token{}) || len(d.more) < len(idempotency.Fingerprint{}) {
		return errName
	}
	lease := idempotency.Lease{Name: name, Token: idempotency.Token([]byte(d.what))}
	rest := []byte(d.more[copy(lease.Body[:], d.more):])
	if d.step == abandon {
		_, err := k.shared.Abandon(ctx, lease)
		return err
	}
	a, err := idempotency.ParseAnswer(rest)
	if err != nil {
		return err
	}
	if d.step == answer {
		o, err := k.shared.Begin(ctx, name, lease.Body)
		switch {
		case err != nil:
			return err
		case o.State == idempotency.InFlight:
			return errLater
		case o.State != idempotency.Started:
			return nil
		}
		lease = o.Lease
	}
	_, err = k.shared.Finish(ctx, lease, a)
	return err
}

// parseName reads what idempotency.Name.Text wrote.
func parseName(text string) (idempotency.Name, bool) {
	figures, rest, found := strings.Cut(text, ":")
	length, err := strconv.Atoi(figures)
	if !found || err != nil || length < 0 || length > len(rest) {
		return idempotency.Name{}, false
	}
	name := idempotency.Name{Caller: rest[:length], Key: rest[length:]}
	return name, name.Check() == nil && name.Text() == text
}
