package relay

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mailgate/mailgate/internal/breaker"
	"github.com/mailgate/mailgate/mailer/address"
)

// Envelope is who an email is from and to, and what a relay has to know before its text.
type Envelope struct {
	From     address.Address
	To       []address.Address // at least one
	EightBit bool              // the text has octets above 127
	// By, unless it is zero, is when the text must be on its way, if it is to leave at all.
	By time.Time
}

// Tx is an email that a relay is ready for. It must end in Commit or Abort, and belongs to one
// goroutine.
type Tx interface {
	// Commit sends the text and returns when a relay has accepted it (its 250 to the final dot).
	// While it is certain that the email never left, the relays that are left are tried, too. The
	// error is an *Error, or ErrUnsendable.
	//
	// The text is a whole RFC 5322 email: lines of at most 998 octets, each ended by CRLF, dots not
	// stuffed, of ASCII unless Envelope.EightBit says otherwise. No octet of it is changed.
	Commit(text []byte) (Receipt, error)
	// Abort ends a transaction whose email is not to leave. The relay waits for a text that it
	// does not get, so the connection is closed. After Commit, Abort does nothing.
	Abort()
}

// transaction is a Tx.
type transaction struct {
	relays  *Relays
	budget  budget
	release func() // of the budget
	Envelope
	left  []*relay // still to be asked
	ended bool

	// The relay that is asked now, over which connection, and since when.
	relay *relay
	conn  *conn
	pass  breaker.Pass
	began time.Time

	last        *Error // the answer, if no other relay takes the email
	relayFailed bool   // a relay was asked and failed otherwise than at the recipient
}

// Begin finds a relay that is ready for the text of an email. It tries the relays in order. With
// another to try, an email waits for a connection for a third of its time. Of several recipients a
// relay takes all or none. The error is an *Error whose Outcome is never Unknown.
//
// Begin and Commit together end when ctx ends or Options.Deadline has passed.
func (r *Relays) Begin(ctx context.Context, e Envelope) (Tx, error) {
	if !r.enter() {
		return nil, &Error{Outcome: Unavailable, Err: errClosed}
	}
	tx := &transaction{relays: r, Envelope: e, left: r.relays}
	tx.budget, tx.release = newBudget(ctx, r.life, r.options.Deadline, e.By)
	failure := tx.pace()
	if failure == nil {
		failure = tx.next()
	}
	if failure != nil {
		tx.end()
		return nil, failure
	}
	return tx, nil
}

// domain is that whose share of the connections the email uses. Of several recipients it is the
// first one's.
func (tx *transaction) domain() string { return tx.To[0].Domain() }

func (tx *transaction) end() {
	tx.ended = true
	tx.release()
	tx.relays.sending.Done()
}

// pace waits under the pace, unless there is no relay to ask.
func (tx *transaction) pace() *Error {
	r := tx.relays
	if r.pacer == nil || !slices.ContainsFunc(r.relays, (*relay).usable) {
		return nil
	}
	began := time.Now()
	failure := r.pacer.wait(tx.budget)
	if failure == nil {
		r.options.Metrics.Paced.Observe(time.Since(began).Seconds())
	}
	return failure
}

// next asks the relays that are left until one is ready.
func (tx *transaction) next() *Error {
	for len(tx.left) > 0 {
		tx.relay, tx.left = tx.left[0], tx.left[1:]
		until := tx.budget.lastCall
		if slices.ContainsFunc(tx.left, (*relay).usable) {
			until = time.Now().Add(time.Until(until) / 3)
		}
		failure := tx.ask(until)
		if failure == nil {
			return nil
		}
		tx.note(failure)
		if failure.Outcome == Rejected || tx.budget.tooLate() {
			return tx.answer()
		}
	}
	return tx.answer()
}

// ask goes up to the 354 of the relay. It waits for a connection until then at most.
func (tx *transaction) ask(until time.Time) *Error {
	r := tx.relay
	tx.began, tx.conn = time.Now(), nil
	if wait := r.circuit.Wait(); wait > 0 {
		return r.circuitOpen(wait)
	}
	var failure *Error
	if tx.conn, failure = r.pool.take(tx.budget.ctx, until, tx.domain()); failure != nil {
		return failure
	}
	// Asked again: the circuit may have opened while this email waited.
	if tx.pass = r.circuit.Ask(); !tx.pass.OK {
		r.pool.release(tx.conn, tx.domain())
		return r.circuitOpen(tx.pass.Wait)
	}
	failure = tx.open()
	if failure != nil {
		tx.endTry(failure)
	}
	return failure
}

// open gets to the 354 over the kept connection, or a new one. A kept one that turns out
// dead or spent is replaced, once, unless it is too late for that.
func (tx *transaction) open() (failure *Error) {
	if kept := tx.conn; kept != nil {
		kept.enter(tx.budget)
		failure = kept.begin(tx.Envelope)
		if failure == nil || !kept.stale(failure) || tx.budget.tooLate() {
			return failure
		}
		kept.part(failure)
	}
	if tx.conn, failure = tx.relay.dial(tx.budget); failure != nil {
		return failure
	}
	return tx.conn.begin(tx.Envelope)
}

// endTry ends a try. The circuit is updated first: the next in the queue must find it as this
// try leaves it.
func (tx *transaction) endTry(failure *Error) {
	r := tx.relay
	if failure != nil && failure.overLimit() && r.pool.limitReached() {
		failure.Err = errOverLimit
		if tx.conn != nil {
			tx.conn.state = broken
		}
	}
	if tx.conn != nil {
		tx.conn.leave()
	}
	outcome := health(tx.budget.ctx, failure)
	if r.circuit.Settle(tx.pass, outcome) {
		r.turned(outcome == breaker.Failed)
	}
	tx.relays.watch(r, failure, outcome)
	r.pool.release(tx.conn, tx.domain())
}

// note keeps and reports what a relay said. The answer in the end is that of the last one that
// said something; an open circuit only adds when to try again.
func (tx *transaction) note(failure *Error) {
	if errors.Is(failure, errOpen) {
		if tx.last == nil || errors.Is(tx.last, errOpen) && failure.RetryAfter < tx.last.RetryAfter {
			tx.last = failure
		}
		return
	}
	tx.last = failure
	if errors.Is(failure, errOverLimit) { // back in the queue it may yet be accepted
		tx.left = append([]*relay{tx.relay}, tx.left...)
		return
	}
	tx.relay.tried(string(failure.Outcome), tx.began)
	if failure.Outcome != Busy {
		tx.relayFailed = tx.relayFailed || failure.Outcome == Unavailable
		tx.relay.report(tx.To[0], failure)
	}
}

func (tx *transaction) answer() *Error {
	if tx.last.Outcome == Deferred && tx.relayFailed {
		tx.last.Outcome = Unavailable
	}
	return tx.last
}

// Commit implements Tx.
func (tx *transaction) Commit(text []byte) (Receipt, error) {
	if !Sendable(text, tx.EightBit) {
		tx.Abort()
		return Receipt{}, ErrUnsendable
	}
	defer tx.end()
	for {
		reply, failure := tx.conn.send(text)
		tx.endTry(failure)
		if failure == nil {
			tx.relay.tried("sent", tx.began)
			return Receipt{Relay: tx.relay.name, Reply: *reply}, nil
		}
		tx.note(failure)
		if failure.Outcome != Unavailable || tx.budget.tooLate() {
			return Receipt{}, tx.answer()
		}
		if failure := tx.next(); failure != nil {
			return Receipt{}, failure
		}
	}
}

// Abort implements Tx.
func (tx *transaction) Abort() {
	if tx.ended {
		return
	}
	tx.conn.state = broken
	tx.endTry(nil)
	tx.end()
}
