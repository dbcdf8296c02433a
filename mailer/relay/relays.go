// Package relay hands mails to SMTP relays and says exactly what became of them.
//
// A mail is a transaction. Begin finds a relay and goes up to its 354; until then the mail
// has certainly not left. Commit sends the text and says whether it was accepted, refused
// for good, certainly not sent, or possibly delivered without an answer. The caller notes
// between the two that the mail may leave.
//
//	tx, err := relays.Begin(ctx, from, to)
//	if err != nil {
//		return err // the mail never left, or was refused for good
//	}
//	defer tx.Abort() // does nothing after Commit
//	if err := note(ctx); err != nil {
//		return err
//	}
//	receipt, err := tx.Commit(ctx, text)
package relay

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mailgate/mailgate/mailer/address"
)

// Relays hands mails to the first of several relays that takes them. It may be used from
// any number of goroutines.
type Relays struct {
	relays   []*relay
	pace     *pacer // nil: no pace
	deadline time.Duration
	paced    func(time.Duration)
	life     context.Context // ends when everything must
	end      context.CancelFunc

	mu      sync.Mutex
	closing bool
	under   sync.WaitGroup // transactions under way
	closed  chan struct{}  // closed when Close is done
}

// New prepares the relays, which are tried in this order. The first mail dials. The caller
// closes them.
func New(urls []URL, options Options) (*Relays, error) {
	if len(urls) == 0 {
		return nil, errors.New("relay settings: no relay is given")
	}
	o, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Relays{deadline: o.Deadline, paced: o.Hooks.Paced, closed: make(chan struct{})}
	r.life, r.end = context.WithCancel(context.Background())
	for _, url := range urls {
		if url.mode == 0 {
			return nil, errors.New("relay settings: a relay URL is empty")
		}
		r.relays = append(r.relays, newRelay(r.life, url, o))
	}
	if o.Pace.PerSecond > 0 {
		r.pace = newPacer(o.Pace, o.Now, r.life.Done())
	}
	return r, nil
}

// Tx is a mail that a relay is ready for. It must end in Commit or Abort, and belongs to one
// goroutine.
type Tx struct {
	relays *Relays
	budget budget
	mail   envelope
	try    *try
	ended  bool
	left   []*relay // still to be asked
	again  []*relay // whose queue was left early, to be asked once more at the end

	last     *Error // of the relays asked so far
	asked    bool   // at least one was, and not just found busy
	deferred bool   // all that were asked put the recipient off
}

// Begin finds a relay that is ready for the text of a mail from and to these addresses. It
// tries the relays in order. With another to try, a mail waits for a connection for a third
// of its time, and comes back to that queue if no other relay takes it. The error is an
// *Error whose Outcome is never Unknown.
//
// The whole of Begin and Commit takes until ctx ends or Options.Deadline has passed, at most.
func (r *Relays) Begin(ctx context.Context, from, to address.Address) (*Tx, error) {
	if from.IsZero() || to.IsZero() {
		return nil, unsendable("it has no sender or no recipient")
	}
	if !r.enter() {
		return nil, &Error{Outcome: Unavailable, Err: ErrClosed}
	}
	tx := &Tx{
		relays: r, budget: newBudget(ctx, time.Now(), r.deadline),
		mail: envelope{from: from, to: to, domain: to.Domain()},
		left: r.relays, deferred: true,
	}
	failure := r.allOpen()
	if failure == nil {
		failure = r.await(tx.budget)
	}
	if failure == nil {
		failure = tx.next()
	}
	if failure != nil {
		r.under.Done()
		return nil, failure
	}
	return tx, nil
}

// allOpen is the failure of a mail that no relay would be asked about, so that it does not
// wait under the pace.
func (r *Relays) allOpen() *Error {
	var soonest int64
	for _, relay := range r.relays {
		rest := relay.circuit.Rest()
		if rest == 0 {
			return nil
		}
		if soonest == 0 || rest < soonest {
			soonest = rest
		}
	}
	return &Error{Outcome: Unavailable, RetryAfter: time.Duration(soonest) * time.Millisecond, Err: errOpen}
}

func (r *Relays) await(b budget) *Error {
	if r.pace == nil {
		return nil
	}
	began := time.Now()
	failure := r.pace.wait(b)
	if failure == nil {
		r.paced(time.Since(began))
	}
	return failure
}

// next asks the relays that are left until one is ready.
func (tx *Tx) next() *Error {
	for {
		relay, line := tx.choose()
		if relay == nil {
			return tx.failure()
		}
		t, failure := relay.begin(tx.budget, line, tx.mail)
		if failure == nil {
			tx.try = t
			return nil
		}
		tx.note(failure)
		if failure.Outcome == Rejected || tx.budget.tooLate() {
			return tx.failure()
		}
		if failure.Outcome == Busy && line.Before(tx.budget.lastCall) && !time.Now().Before(line) {
			tx.again = append(tx.again, relay)
		}
	}
}

// choose returns the relay to ask next and how long to wait in its queue: a third of the
// time if there is another to ask after it.
func (tx *Tx) choose() (*relay, time.Time) {
	if len(tx.left) == 0 {
		if len(tx.again) == 0 {
			return nil, time.Time{}
		}
		relay := tx.again[0]
		tx.again = tx.again[1:]
		return relay, tx.budget.lastCall
	}
	relay := tx.left[0]
	tx.left = tx.left[1:]
	for _, other := range tx.left {
		if other.circuit.Rest() == 0 {
			return relay, time.Now().Add(time.Until(tx.budget.lastCall) / 3)
		}
	}
	return relay, tx.budget.lastCall
}

// note keeps what a relay said. The answer in the end is that of the last one that said
// something; an open circuit only adds when to come again.
func (tx *Tx) note(failure *Error) {
	open := errors.Is(failure, errOpen)
	if tx.last == nil || !open {
		tx.last = failure
	}
	if !open && failure.Outcome != Busy {
		tx.asked, tx.deferred = true, tx.deferred && failure.Deferred
	}
}

func (tx *Tx) failure() *Error {
	tx.last.Deferred = tx.last.Outcome == Unavailable && tx.asked && tx.deferred
	return tx.last
}

// Commit sends the text and returns when a relay has accepted it (its 250 to the final dot).
// While it is certain that the mail never left, the relays that are left are tried, too. The
// error is an *Error, or matches ErrUnsendable.
//
// The text is a whole RFC 5322 mail: lines of at most 998 octets of ASCII, each ended by
// CRLF, dots not stuffed. No octet of it is changed.
func (tx *Tx) Commit(ctx context.Context, text []byte) (Receipt, error) {
	wire, err := stuff(text)
	if err != nil {
		tx.Abort()
		return Receipt{}, err
	}
	tx.ended = true
	defer tx.relays.under.Done()
	tx.budget = tx.budget.within(ctx)
	for retried := false; ; {
		t := tx.try
		reply, failure := t.conn.send(tx.budget, wire, len(text))
		stale := failure != nil && t.conn.stale(failure)
		t.end(tx.budget, failure)
		if failure == nil || !errors.Is(failure, errCrowded) { // back in the queue it may yet be accepted
			t.relay.tried(t.relay.name, resultOf(failure), time.Since(t.began))
		}
		if failure == nil {
			return Receipt{Relay: t.relay.name, OAuth: t.relay.dialer.tokens != nil, Reply: *reply}, nil
		}
		tx.note(failure)
		if failure.Outcome != Unavailable || tx.budget.tooLate() {
			return Receipt{}, tx.failure()
		}
		if errors.Is(failure, errCrowded) || stale && !retried {
			tx.left, retried = append([]*relay{t.relay}, tx.left...), true
		}
		if failure := tx.next(); failure != nil {
			return Receipt{}, failure
		}
	}
}

func resultOf(failure *Error) string {
	if failure == nil {
		return "sent"
	}
	return failure.Outcome.String()
}

// Abort ends a transaction whose mail is not to leave. The relay waits for a text that it
// does not get, so the connection is closed. After Commit, Abort does nothing.
func (tx *Tx) Abort() {
	if tx.ended {
		return
	}
	tx.ended = true
	defer tx.relays.under.Done()
	tx.try.conn.broken = true
	tx.try.end(tx.budget, nil)
}

func (r *Relays) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closing {
		r.under.Add(1)
	}
	return !r.closing
}

// Close refuses new mails, waits for those under way and leaves the relays. If ctx ends
// first, what is under way is cut off (a mail whose final dot has gone out is then Unknown)
// and the error is the context's. Either way no connection and no goroutine is left.
func (r *Relays) Close(ctx context.Context) error {
	r.mu.Lock()
	already := r.closing
	r.closing = true
	r.mu.Unlock()
	if already {
		<-r.closed
		return nil
	}
	defer close(r.closed)
	defer r.end()
	defer context.AfterFunc(ctx, func() {
		r.end()
		for _, relay := range r.relays {
			relay.cut()
		}
	})()
	r.under.Wait()
	for _, relay := range r.relays {
		relay.pool.close()
	}
	return ctx.Err()
}

// Stats are one relay's figures at this moment.
type Stats struct {
	Relay   string
	Open    int  // connections, including those being made
	Idle    int  // of them
	Waiting int  // sends waiting for one
	Resting bool // its circuit breaker is open
}

// Stats are the figures of every relay, in order.
func (r *Relays) Stats() []Stats {
	stats := make([]Stats, len(r.relays))
	for i, relay := range r.relays {
		open, idle, waiting := relay.pool.counts()
		stats[i] = Stats{Relay: relay.name, Open: open, Idle: idle, Waiting: waiting, Resting: relay.circuit.Open()}
	}
	return stats
}
