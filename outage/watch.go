package outage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/verify"
)

// Options say what a Watch looks after.
type Options struct {
	// Disk is where the node's own history is, and what it owes. It stays the caller's to
	// close, after the Watch.
	Disk *cache.Disk
	// Shared asks whether the shared history takes writes.
	Shared func(context.Context) error
	// Away reports whether an error of the shared history, of Shared or of a call, says that it is
	// known to be away. A call that failed otherwise, such as by a timeout, is never decided alone.
	Away func(error) bool
	// Now is the clock of the shared history, as far as it can be known without it.
	Now func() int64
	// Wrong reports whether an error is about what is on record and not about whether it
	// can be reached. None is, if nil.
	Wrong func(error) bool
	// Pause lies between two questions whether an outage is over. 250 ms.
	Pause time.Duration
	// Log is told when an outage begins and ends. The default is silence.
	Log *slog.Logger
}

// A Watch knows whether the shared history can be reached, and sees to it that it is told
// what it missed. There is one for a node.
type Watch struct {
	o      Options
	ledger *ledger
	gaps   *gaps
	scribe scribe

	away atomic.Bool // is there an outage
	met  atomic.Bool // the shared history has answered since the start
	// answers says that it has answered the worker, and failed nobody since.
	answers atomic.Bool

	mu       sync.Mutex
	accounts map[string]*account
	sweepers []func(now int64)
	outage   outage

	admitted, written, unnoted atomic.Int64
	givenBack                  atomic.Int64 // of those admitted, before they were written

	started bool
	wake    chan struct{}
	ctx     context.Context // of the worker
	stop    context.CancelFunc
	done    chan struct{}
	closing sync.Once
}

// An outage is one as long as it lasts.
type outage struct {
	since  int64     // by the shared clock
	began  time.Time // the same, to measure with
	notes  uint64    // how often it was met with
	cause  error
	doubts doubts
	before tally
}

// A tally is what has become of those admitted alone since the start.
type tally struct{ admitted, written, expired, givenBack int64 }

func (w *Watch) tally() tally {
	return tally{w.admitted.Load(), w.written.Load(), w.ledger.expired.Load(), w.givenBack.Load()}
}

// doubts are the last calls that failed, of which each has to succeed before an outage is
// over: in a Cluster a part can be away. More than a few of them would tell little.
type doubts [16]func(context.Context) error

// NewWatch reads what the node owes. It watches nothing until Start, which comes when all
// parts have been wrapped.
func NewWatch(o Options) (*Watch, error) {
	if o.Disk == nil || o.Shared == nil || o.Away == nil || o.Now == nil {
		return nil, errors.New("outage: Disk, Shared, Away and Now are needed")
	}
	if o.Pause == 0 {
		o.Pause = 250 * time.Millisecond
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ledger, err := openLedger(o.Disk)
	if err != nil {
		return nil, fmt.Errorf("outage: %w", err)
	}
	gaps, err := openGaps(o.Disk)
	if err != nil {
		ledger.close()
		return nil, fmt.Errorf("outage: %w", err)
	}
	w := &Watch{o: o, ledger: ledger, gaps: gaps, scribe: newScribe(), accounts: map[string]*account{}, wake: make(chan struct{}, 1), done: make(chan struct{})}
	w.ctx, w.stop = context.WithCancel(context.Background())
	ledger.bound.tell = w.tellTooMuch
	return w, nil
}

// A State is how the node stands.
type State struct {
	Degraded bool
	Since    int64 // milliseconds since 1970; 0 unless Degraded
	Debts    int   // steps that the shared history is to be told of
	// Admitted are the sends admitted alone, Written those that the shared history was then
	// told of, and Unnoted those that it admitted and this node could not note for itself,
	// or not soon.
	// All are counted since the start.
	Admitted, Written, Unnoted int64
}

// State is that of the moment.
func (w *Watch) State() State {
	w.mu.Lock()
	since := w.outage.since
	w.mu.Unlock()
	return State{
		Degraded: since != 0, Since: since, Debts: w.owed(),
		Admitted: w.admitted.Load(), Written: w.written.Load(), Unnoted: w.unnoted.Load(),
	}
}

// Ready reports whether requests can be decided: by the shared history, or by this node's
// own, which own is asked about.
func (w *Watch) Ready(ctx context.Context, own func(context.Context) error) error {
	if !w.away.Load() {
		err := w.o.Shared(ctx)
		if err == nil {
			w.heard()
			return nil
		}
		if ctx.Err() != nil || !w.o.Away(err) {
			return fmt.Errorf("%w: %w", throttle.ErrUnavailable, err)
		}
		w.note(err, nil)
	}
	if w.hasGaps() {
		return fmt.Errorf("%w: %w", errGaps, w.cause())
	}
	if w.ledger.bound.met.Load() {
		return fmt.Errorf("%w: %w", errTooMuch, w.cause())
	}
	return own(ctx)
}

func (w *Watch) cause() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outage.cause == nil {
		return throttle.ErrUnavailable // it ended just now
	}
	return w.outage.cause
}

// heard takes note that the shared history has answered.
func (w *Watch) heard() {
	if !w.met.Load() {
		w.met.Store(true)
	}
}

// unavailable reports whether an error of the shared history says that a call was not answered,
// for whatever reason, so that it can be made again.
func (w *Watch) unavailable(err error) bool {
	kind := errors.Is(err, throttle.ErrUnavailable) || errors.Is(err, verify.ErrUnavailable) || errors.Is(err, idempotency.ErrUnavailable)
	return kind && (w.o.Wrong == nil || !w.o.Wrong(err))
}

// undone reports whether a step certainly was not taken.
func (w *Watch) undone(err error) bool {
	return errors.Is(err, errOwes) || errors.Is(err, throttle.ErrUnchanged)
}

// goesOn reports whether a call that failed is to be answered alone, and takes note of the
// outage. It is where the shared history is known to be away, or does not yet know what this node
// has admitted of the key in an outage. Doubt is a call for the key that changes nothing; it has
// to succeed before the outage is over.
func (a *account) goesOn(ctx context.Context, key string, err error, doubt func(context.Context) error) bool {
	w := a.watch
	if ctx.Err() != nil {
		return false
	}
	if errors.Is(err, errOwes) {
		if a.owesAdmissions(key) {
			return true
		}
		err = doubt(ctx)
	}
	if err == nil || !w.o.Away(err) {
		return false
	}
	w.note(err, doubt)
	return true
}

// owesAdmissions reports whether something of the key was decided alone, in an outage, that the
// shared history has not been told of. What ends something may be owed without an outage.
func (a *account) owesAdmissions(key string) bool {
	return slices.ContainsFunc(a.watch.ledger.of(a.holder(key)), func(d debt) bool {
		return d.step == record || d.step == add || d.step == begin || d.step == forget
	})
}

// note takes note of a failure, and of the outage that begins with it.
func (w *Watch) note(err error, doubt func(context.Context) error) {
	w.mu.Lock()
	o := &w.outage
	first := o.since == 0
	if first {
		*o = outage{since: w.o.Now(), began: time.Now(), cause: err, before: w.tally()}
		w.away.Store(true)
	}
	o.notes++
	w.answers.Store(false)
	if doubt != nil {
		o.doubts[o.notes%uint64(len(o.doubts))] = doubt
	}
	w.mu.Unlock()
	if first {
		w.tellBegin(err)
		w.rouse()
	}
}

func (w *Watch) tellBegin(err error) {
	if w.hasGaps() {
		w.o.Log.Error("the shared history is away and this node's own records are incomplete: it refuses sends until Redis is back", "cause", err)
		return
	}
	w.o.Log.Warn("the shared history is away: this node goes on with its own", "cause", err)
}

func (w *Watch) tellTooMuch() {
	w.o.Log.Error("this node has done as much alone as it can remember: it admits no more until some of that is old, or written to the shared history", "debts", w.ledger.count.Load())
}

// rouse wakes the worker.
func (w *Watch) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// sweepToo has something more forget what is old, now and then.
func (w *Watch) sweepToo(forget func(now int64)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sweepers = append(w.sweepers, forget)
}

// owe notes a debt and has the worker look after it.
func (a *account) owe(key string, d debt) error {
	err := a.watch.ledger.owe(a.holder(key), d)
	a.watch.rouse()
	return err
}
