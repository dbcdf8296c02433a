package outage

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mailgate/mailgate/idempotency"
)

// An OwnKeeper keeps the node's own records of requests.
type OwnKeeper interface {
	idempotency.Keeper
	// Look answers what BeginAs would and begins nothing. There is nothing to say of a
	// request that BeginAs would start.
	Look(ctx context.Context, lease idempotency.Lease) (o idempotency.Outcome, known bool, err error)
	// FinishFor is Finish for an answer that is to be kept for so many milliseconds.
	FinishFor(ctx context.Context, lease idempotency.Lease, answer idempotency.Answer, keep int64) (kept bool, err error)
}

// A Keeper keeps records of requests with the shared keeper, and of those that this node
// does with its own as well. That one is asked first, so that a node gives one answer to a
// request whatever becomes of the shared keeper. It implements idempotency.Keeper.
type Keeper struct {
	*account
	shared idempotency.Keeper
	own    OwnKeeper
	terms  idempotency.Terms
	until  atomic.Int64 // from when on there is nothing here any more
	begun  begun
	asking sync.Map // names that are being asked about, each with a channel that then ends
}

// Keeper makes one of a pair with these terms. Its name tells it from the node's others.
func (w *Watch) Keeper(name string, terms idempotency.Terms, shared idempotency.Keeper, own OwnKeeper) *Keeper {
	k := &Keeper{shared: shared, own: own, terms: terms, begun: begun{most: mostBegun}}
	k.account = w.account("."+name, true, k.pay)
	w.sweepToo(k.begun.sweep)
	k.keeps() // what a process before this one has kept
	return k
}

// keeps takes note that there is something here from now on.
func (k *Keeper) keeps() { k.until.Store(k.watch.o.Now() + k.terms.Lease + k.terms.Keep) }

// look is what this node knows of a request. While its disk hangs it knows nothing of some,
// and says so soon.
func (k *Keeper) look(ctx context.Context, lease idempotency.Lease) (o idempotency.Outcome, known bool, err error) {
	if k.until.Load() <= k.watch.o.Now() {
		return o, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, k.watch.scribe.patience)
	defer cancel()
	return k.own.Look(ctx, lease)
}

// ask returns when nobody else on this node asks about the name. Two at once would not know of
// each other: the shared keeper may be away for one of them alone.
func (k *Keeper) ask(ctx context.Context, name string) (done func(), err error) {
	mine := make(chan struct{})
	for {
		other, taken := k.asking.LoadOrStore(name, mine)
		if !taken {
			return func() { k.asking.Delete(name); close(mine) }, nil
		}
		select {
		case <-other.(chan struct{}):
		case <-ctx.Done():
			return nil, idempotency.Unavailable(beginning, ctx.Err())
		}
	}
}

const beginning = "beginning a request"

// Begin asks whether a request is to be done. The others learn of one that is begun alone at
// its end.
func (k *Keeper) Begin(ctx context.Context, name idempotency.Name, body idempotency.Fingerprint) (idempotency.Outcome, error) {
	return k.begin(ctx, idempotency.Lease{Name: name, Body: body, Token: idempotency.NewToken()})
}

// BeginAs is Begin for a request of which the others have to know before its end. If they
// cannot be asked, they are told as soon as they can be.
func (k *Keeper) BeginAs(ctx context.Context, lease idempotency.Lease) (o idempotency.Outcome, err error) {
	if o, err = k.begin(ctx, lease); err != nil || !o.Degraded {
		return o, err
	}
	d := debt{step: begin, what: string(lease.Token[:]), until: k.watch.o.Now() + k.terms.Lease, more: string(lease.Body[:])}
	if err = k.noteDebt(beginning, lease.Name, d); err != nil {
		return idempotency.Outcome{Lease: lease}, err
	}
	return o, nil
}

func (k *Keeper) begin(ctx context.Context, lease idempotency.Lease) (o idempotency.Outcome, err error) {
	defer func() {
		if err != nil { // it may have begun here or there, unheard
			o = idempotency.Outcome{Lease: lease}
		}
	}()
	name := lease.Name.Text()
	done, err := k.ask(ctx, name)
	if err != nil {
		return o, err
	}
	defer done()
	o, known, err := k.look(ctx, lease)
	if known || err != nil {
		return o, err
	}
	if err = k.settled(ctx, name); err == nil {
		o, err = k.shared.BeginAs(ctx, lease)
	} else {
		err = idempotency.Unavailable(beginning, err)
	}
	if !k.fails(ctx, name, err, k.doubt(lease.Name)) {
		k.note(context.WithoutCancel(ctx), lease, o)
		return o, err
	}
	if k.begun.full() {
		return idempotency.Outcome{}, both(err, errTooMuch)
	}
	k.keeps()
	if o, err = k.own.BeginAs(ctx, lease); err == nil && o.State == idempotency.Started {
		k.begun.add(lease.Token, k.watch.o.Now()+k.terms.Lease)
		o.Degraded = true
	}
	return o, err
}

// ofOthers is how many milliseconds a node keeps an answer that another gave. It does not know
// until when that is kept, and those who ask again do so soon.
const ofOthers = 10 * 60 * 1000

// note takes note of what the shared keeper has said, for when it cannot be asked.
func (k *Keeper) note(ctx context.Context, lease idempotency.Lease, o idempotency.Outcome) {
	switch o.State {
	case idempotency.Started:
		k.keeps()
		k.writes(func() error {
			_, err := k.own.BeginAs(ctx, lease)
			return err
		})
	case idempotency.Replay:
		k.keeps()
		k.writes(func() error {
			_, err := k.own.BeginAs(ctx, lease)
			if err == nil {
				_, err = k.own.FinishFor(ctx, lease, o.Answer, min(k.terms.Keep, ofOthers))
			}
			return err
		})
	}
}

// writes notes something for the node itself, and counts what could not be noted, or not
// soon. The shared keeper knows.
func (k *Keeper) writes(note func() error) {
	if _, err := k.watch.scribe.write(note); err != nil {
		k.watch.unnoted.Add(1)
	}
}

// Finish keeps the answer: with the shared keeper if it can be, or else here until then.
func (k *Keeper) Finish(ctx context.Context, lease idempotency.Lease, a idempotency.Answer) (kept bool, err error) {
	kept, err = k.shared.Finish(ctx, lease, a)
	alone := k.owes(ctx, lease.Name.Text(), err, k.doubt(lease.Name))
	if err != nil && !alone {
		return false, err
	}
	begun := k.begun.remove(lease.Token)
	if !kept && !alone && !begun {
		return false, nil // somebody else has begun since
	}
	k.keeps()
	ctx = context.WithoutCancel(ctx)
	if kept {
		k.writes(func() error {
			_, err := k.own.FinishFor(ctx, lease, a, k.terms.Keep)
			return err
		})
		return true, nil
	}
	mine, failed := k.own.FinishFor(ctx, lease, a, k.terms.Keep)
	if failed != nil || !mine {
		return false, failed
	}
	more := idempotency.AppendAnswer(append([]byte(nil), lease.Body[:]...), a)
	d := debt{step: finish, what: string(lease.Token[:]), until: k.watch.o.Now() + k.terms.Keep, more: string(more)}
	return true, k.noteDebt("finishing a request", lease.Name, d)
}

// Abandon frees the name. While it is owed to the shared keeper that the name is taken, the
// keeper may be told so at this very moment, so it is told the end afterwards.
func (k *Keeper) Abandon(ctx context.Context, lease idempotency.Lease) (freed bool, err error) {
	alone := k.watch.ledger.number(k.holder(lease.Name.Text())) > 0
	if !alone {
		freed, err = k.shared.Abandon(ctx, lease)
		alone = k.owes(ctx, lease.Name.Text(), err, k.doubt(lease.Name))
		if err != nil && !alone {
			return false, err
		}
	}
	k.begun.remove(lease.Token)
	mine, failed := k.abandon(context.WithoutCancel(ctx), lease)
	if !alone || failed != nil {
		return freed || mine, failed
	}
	d := debt{step: abandon, what: string(lease.Token[:]), until: k.watch.o.Now() + k.terms.Lease, more: string(lease.Body[:])}
	return true, k.noteDebt("abandoning a request", lease.Name, d)
}

// doubt asks for what changes nothing: to abandon a request that nobody has begun.
func (k *Keeper) doubt(name idempotency.Name) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := k.shared.Abandon(ctx, idempotency.Lease{Name: name, Token: idempotency.NewToken()})
		return err
	}
}

// abandon frees the name on this node.
func (k *Keeper) abandon(ctx context.Context, lease idempotency.Lease) (freed bool, err error) {
	freed, err = k.watch.scribe.remove(func() (bool, error) { return k.own.Abandon(ctx, lease) })
	if errors.Is(err, errHangs) {
		err = idempotency.Unavailable("abandoning a request", err)
	}
	return freed, err
}

func (k *Keeper) noteDebt(doing string, name idempotency.Name, d debt) error {
	if err := k.owe(name.Text(), d); err != nil {
		return idempotency.Unavailable(doing, err)
	}
	return nil
}

var errName = errors.New("not the name of a request")

// pay tells the shared keeper that a request is under way, or how it ended. One that it knows
// nothing of is finished there all the same. Where somebody else is at it this waits for the
// end of that lease; and where another node has done the request meanwhile, that one's answer
// stays there, and this node gives its own.
func (k *Keeper) pay(ctx context.Context, key string, d debt) error {
	name, ok := parseName(key)
	if !ok || len(d.what) != len(idempotency.Token{}) || len(d.more) < len(idempotency.Fingerprint{}) {
		return errName
	}
	lease := idempotency.Lease{Name: name, Token: idempotency.Token([]byte(d.what))}
	rest := []byte(d.more[copy(lease.Body[:], d.more):])
	switch d.step {
	case begin:
		_, err := k.shared.BeginAs(ctx, lease) // whoever else is at it hinders others as well
		return err
	case abandon:
		_, err := k.shared.Abandon(ctx, lease)
		return err
	}
	a, err := idempotency.ParseAnswer(rest)
	if err != nil {
		return err
	}
	if kept, err := k.shared.Finish(ctx, lease, a); kept || err != nil {
		return err
	}
	o, err := k.shared.BeginAs(ctx, lease)
	switch {
	case err != nil:
		return err
	case o.State == idempotency.InFlight:
		return errLater
	case o.State == idempotency.Started: // it has ended just now
		_, err = k.shared.Finish(ctx, lease, a)
	}
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
