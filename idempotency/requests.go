package idempotency

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/throttle"
)

// Options say where records are kept and for how long, in milliseconds.
type Options struct {
	Store keyed.Store
	// Lease is how long an attempt may take. The default is 60 seconds.
	Lease int64
	// Keep is how long an answer is kept. The default is 24 hours.
	Keep int64
}

// Requests keeps the requests of all callers. It may be used by any number of goroutines.
//
// An invalid name is ErrKey or ErrCaller. Any other error is
// throttle.ErrUnavailable and means that there is no answer, never that a request may be
// done; what was asked for may or may not have been recorded. Errors name neither caller nor
// key.
type Requests struct{ o Options }

const maxTerm = 366 * 24 * 60 * 60 * 1000

// New checks the options and fills in the defaults.
func New(o Options) (*Requests, error) {
	o.Lease = cmp.Or(o.Lease, 60_000)
	o.Keep = cmp.Or(o.Keep, 24*60*60*1000)
	if o.Store == nil {
		return nil, errors.New("idempotency: no Store is given")
	}
	if o.Lease < 1 || o.Lease > o.Keep || o.Keep > maxTerm {
		return nil, fmt.Errorf("idempotency: Lease is 1 ms up to Keep, and Keep is up to 366 days")
	}
	return &Requests{o}, nil
}

// Outcome is the answer to Begin.
type Outcome struct {
	State State
	// Alone reports that the node decided by its own records, because the shared ones are away.
	Alone bool
	// Lease is set with Started; with throttle.ErrUnavailable, since the request may have
	// begun unheard, for Abandon; and with Unknown, where it is the one that was handed over,
	// for Finish with an answer that says so.
	Lease Lease
	// Previous is set with Started where an earlier attempt ended without a hand-over. Its
	// mail never left. What it may have charged under this id is to be released before this
	// attempt is charged.
	Previous throttle.ID
	// RetryAfter is set with InFlight: how many milliseconds the lease lasts.
	RetryAfter int64
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
	Replay                // it was done: give the answer again
	Mismatch              // the key was used for a different request
	Unknown               // it was handed over, and its attempt ended without an answer

	leaseEnded // it was begun, and its attempt ended without a hand-over
)

// Lease is the right to do a request and to record its answer.
type Lease struct {
	name  Name
	body  Fingerprint
	token token
	alone bool // granted by this node alone
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

// errLeaseEnded is why a node that is alone does not start a request again.
var errLeaseEnded = errors.New("another attempt had begun, and other nodes cannot be asked whether they sent its email")

// errSharedLease is why a node that is alone does not hand over.
var errSharedLease = errors.New("the lease is in the shared storage, which is unavailable")

// Begin asks whether a request is to be done. Of any number that ask at once exactly one is
// told Started.
func (q *Requests) Begin(ctx context.Context, name Name, body Fingerprint) (Outcome, error) {
	const doing = "beginning a request"
	if err := name.check(); err != nil {
		return Outcome{}, fmt.Errorf("%s: %w", doing, err)
	}
	lease := Lease{name: name, body: body}
	_, _ = rand.Read(lease.token[:]) // never fails
	o, err := q.begin(ctx, lease, token{})
	if err == nil && o.State == leaseEnded && !o.Alone {
		o, err = q.begin(ctx, lease, o.holder)
	}
	if err == nil && (o.State == leaseEnded || o.Alone && o.Previous != throttle.ID{}) {
		err = fmt.Errorf("%w: %w", throttle.ErrUnavailable, errLeaseEnded)
	}
	if err != nil {
		return Outcome{Lease: lease}, fmt.Errorf("%s: %w", doing, err)
	}
	return o, nil
}

// begin is one try of Begin. over is the token of an attempt that may be replaced.
func (q *Requests) begin(ctx context.Context, lease Lease, over token) (o Outcome, err error) {
	var answer []byte
	alone, err := q.update(ctx, lease.name, func(r record, now int64) (next record) {
		next, o = r.begin(lease, over, now, now+q.o.Lease, now+q.o.Keep)
		answer = next.answer
		return next
	})
	if err == nil && o.State == Replay {
		if o.Answer, err = parseAnswer(answer); err != nil {
			err = fmt.Errorf("%w: %w", throttle.ErrUnavailable, err)
		}
	}
	o.Alone, o.Lease.alone = alone, alone
	return o, err
}

// HandOver records that the request may be done from now on, and reports whether it may. It
// is true once for each lease, and only before the lease ends. After false or an error nothing
// may be sent.
func (q *Requests) HandOver(ctx context.Context, lease Lease) (ok bool, err error) {
	alone, err := q.update(ctx, lease.name, func(r record, now int64) (next record) {
		next, ok = r.handOver(lease, now, now+q.o.Keep)
		return next
	})
	if err == nil && alone && !lease.alone {
		err = fmt.Errorf("%w: %w", throttle.ErrUnavailable, errSharedLease)
	}
	if err != nil {
		return false, fmt.Errorf("marking a request as sent: %w", err)
	}
	return ok, nil
}

// Finish keeps the answer for those who ask again, and reports whether it did: not if another
// attempt has the key. It may be repeated; the first answer stays.
func (q *Requests) Finish(ctx context.Context, lease Lease, answer Answer) (kept bool, err error) {
	text := answer.encode()
	_, err = q.update(ctx, lease.name, func(r record, now int64) (next record) {
		next, kept = r.finish(lease, text, now, now+q.o.Keep)
		return next
	})
	if err != nil {
		return false, fmt.Errorf("finishing a request: %w", err)
	}
	return kept, nil
}

// Abandon frees the key at once, because what was begun was certainly not done, and reports
// whether the lease had the key. It may be repeated.
func (q *Requests) Abandon(ctx context.Context, lease Lease) (freed bool, err error) {
	_, err = q.update(ctx, lease.name, func(r record, now int64) (next record) {
		next, freed = r.abandon(lease, now)
		return next
	})
	if err != nil {
		return false, fmt.Errorf("abandoning a request: %w", err)
	}
	return freed, nil
}

// update lets step replace the record of the name.
func (q *Requests) update(ctx context.Context, name Name, step func(r record, now int64) record) (alone bool, err error) {
	if err := name.check(); err != nil { // of a Lease that no Begin returned
		return false, err
	}
	return keyed.Change(ctx, q.o.Store, name.text(), parse, func(r record, now int64) ([]byte, int64) {
		next := step(r, now)
		return next.encode(), next.expires
	})
}
