package idempotency

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/throttle"
)

// Requests keeps the requests of all callers. It may be used by any number of goroutines.
//
// Each error is throttle.ErrUnavailable and means that there is no answer, never that a request may
// be done; the change may or may not have been recorded. Errors name neither caller nor key.
type Requests struct {
	store keyed.Store
	lease int64
	life  int64 // how long an answer is kept, in milliseconds
}

// New returns the Requests of a store, which keep answers for 24 hours. An attempt may take as long as the
// lease, in milliseconds.
func New(store keyed.Store, lease int64) *Requests {
	return &Requests{store, lease, 24 * 60 * 60 * 1000}
}

// Keeping returns Requests of the same store that keep answers for so many milliseconds.
func (q *Requests) Keeping(life int64) *Requests { return &Requests{q.store, q.lease, life} }

// Outcome is the answer to Begin.
type Outcome struct {
	State State
	// Degraded reports that the node decided by its own records, because the shared ones are unavailable.
	Degraded bool
	// Lease is set with Started. It is also set with throttle.ErrUnavailable, to abandon an attempt that may have begun,
	// and with Unknown, to finish the attempt that was handed over.
	Lease Lease
	// Previous is set with Started where an earlier attempt ended without a hand-over. Its
	// email never left. What it may have charged under this id is to be released before this
	// attempt is charged.
	Previous throttle.ID
	// Answer is set with Replay: the first answer, the caller's to change.
	Answer Answer

	holder token // with leaseEnded: of the attempt that had the lease
}

// State says what to do about a request.
type State int8

// Only Started means that the request is to be done.
const (
	InFlight State = iota // another attempt is in progress
	Started               // do it
	Replay                // it was done: return the kept answer
	Mismatch              // the key was used for a different request
	Unknown               // it was handed over, and its attempt ended without an answer

	leaseEnded // it was begun, and its attempt ended without a hand-over
)

// Lease is the right to do a request and to record its answer.
type Lease struct {
	name     Name
	body     Fingerprint
	token    token
	degraded bool // granted by this node alone
}

// AdmissionID returns the id under which this attempt is charged. No two attempts share one,
// so an attempt that was too late can release its own charge and no other. It is zero for an
// Unknown request that two attempts have handed over.
func (l Lease) AdmissionID() throttle.ID { return l.token.admission() }

func (t token) admission() (id throttle.ID) {
	if t == (token{}) {
		return id
	}
	base64.RawURLEncoding.Encode(id[:], t[:6])
	return id
}

var (
	errLeaseEnded  = errors.New("another attempt had begun, and other nodes cannot be asked whether they sent its email")
	errSharedLease = errors.New("the lease is in the shared storage, which is unavailable")
)

// Begin asks whether a request is to be done. Of any number of simultaneous calls exactly one
// returns Started. A node that is alone does not start again what another attempt has begun.
func (q *Requests) Begin(ctx context.Context, name Name, body Fingerprint) (Outcome, error) {
	const doing = "beginning a request"
	lease := Lease{name: name, body: body}
	_, _ = rand.Read(lease.token[:]) // never fails
	o, err := q.begin(ctx, doing, lease, token{})
	if err == nil && o.State == leaseEnded && !o.Degraded {
		o, err = q.begin(ctx, doing, lease, o.holder)
	}
	if err == nil && (o.State == leaseEnded || o.Degraded && o.Previous != throttle.ID{}) {
		err = throttle.Unavailable(doing, errLeaseEnded)
	}
	if err != nil {
		return Outcome{Lease: lease}, err
	}
	return o, nil
}

// begin returns one try of Begin. over is the token of an attempt that may be replaced.
func (q *Requests) begin(ctx context.Context, doing string, lease Lease, over token) (o Outcome, err error) {
	var answer []byte
	degraded, err := q.update(ctx, doing, lease.name, func(r record, now int64) (next record) {
		next, o = r.begin(lease, over, now, now+q.lease, now+q.life)
		answer = next.answer
		return next
	})
	if err == nil && o.State == Replay {
		if o.Answer, err = parseAnswer(answer); err != nil {
			err = throttle.Unavailable(doing, err)
		}
	}
	o.Degraded, o.Lease.degraded = degraded, degraded
	return o, err
}

// HandOver records that the request may be done from now on, and reports whether it may. It
// is true once for each lease, and only before the lease ends. After false or an error nothing
// may be sent. A node that is alone hands over only what it has begun alone.
func (q *Requests) HandOver(ctx context.Context, lease Lease) (ok bool, err error) {
	const doing = "marking a request as sent"
	degraded, err := q.update(ctx, doing, lease.name, func(r record, now int64) (next record) {
		next, ok = r.handOver(lease, now, now+q.life)
		return next
	})
	if err == nil && degraded && !lease.degraded {
		err = throttle.Unavailable(doing, errSharedLease)
	}
	return ok && err == nil, err
}

// Finish keeps the answer for retries, and reports whether it did: not if another attempt has the
// key. It may be repeated; the first answer stays.
func (q *Requests) Finish(ctx context.Context, lease Lease, answer Answer) (kept bool, err error) {
	text := answer.encode()
	_, err = q.update(ctx, "finishing a request", lease.name, func(r record, now int64) (next record) {
		next, kept = r.finish(lease, text, now, now+q.life)
		return next
	})
	return kept && err == nil, err
}

// Abandon frees the key at once, because what was begun was certainly not done, and reports
// whether the lease had the key. It may be repeated.
func (q *Requests) Abandon(ctx context.Context, lease Lease) (freed bool, err error) {
	_, err = q.update(ctx, "abandoning a request", lease.name, func(r record, now int64) (next record) {
		next, freed = r.abandon(lease, now)
		return next
	})
	return freed && err == nil, err
}

// update lets step replace the record of the name.
func (q *Requests) update(ctx context.Context, doing string, name Name, step func(r record, now int64) record) (degraded bool, err error) {
	degraded, err = keyed.Change(ctx, q.store, name.text(), parse, func(r record, now int64) ([]byte, int64) {
		next := step(r, now)
		return next.encode(), next.expires
	})
	if err != nil {
		return degraded, fmt.Errorf("%s: %w", doing, err)
	}
	return degraded, nil
}
