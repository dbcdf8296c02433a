package idempotency

import (
	"encoding/binary"
	"errors"
	"math"
)

// state is how far a request has come.
//
//	         HandOver              Finish
//	begun ────────────► handedOver ──────► answered
//	  │ │                    │                 ▲
//	  │ └────────────────────┼── Finish ───────┘
//	  └──► abandoned ◄───────┘
//	        Abandon
//
// An abandoned record frees the key. It remains for as long as a copy of what it replaced
// could matter, so that a merge does not bring that back.
type state byte

const (
	none state = iota
	abandoned
	begun
	handedOver
	answered
)

// token tells one lease of a key from all others. The zero token is of none: two attempts
// have both handed over.
type token [16]byte

// record is what is kept of one key. The zero record is none. Records are values; what
// changes one returns another.
type record struct {
	state   state
	token   token
	body    Fingerprint
	lease   int64  // begun, handedOver: when the lease ends
	expires int64  // the first moment at which the record is none
	answer  []byte // answered: the encoded Answer
}

// at returns the record as of now.
func (r record) at(now int64) record {
	if now >= r.expires {
		return record{}
	}
	return r
}

// begin answers a request at now. If it is Started, next is begun under the lease until
// leaseEnds. An attempt that was begun and has ended without being handed over is replaced
// only if over is its token; any other is reported as leaseEnded.
func (r record) begin(l Lease, over token, now, leaseEnds, expires int64) (next record, o Outcome) {
	started := record{state: begun, token: l.token, body: l.body, lease: leaseEnds, expires: expires}
	switch r = r.at(now); {
	case r.state == none || r.state == abandoned:
		return started, Outcome{State: Started, Lease: l}
	case r.state == begun && now >= r.lease && r.token == over:
		return started, Outcome{State: Started, Lease: l, Previous: over.admission()}
	case r.state == begun && now >= r.lease:
		return r, Outcome{State: leaseEnded, holder: r.token}
	case r.body != l.body:
		return r, Outcome{State: Mismatch}
	case r.state == answered:
		return r, Outcome{State: Replay}
	case now < r.lease:
		return r, Outcome{State: InFlight, RetryAfter: r.lease - now}
	}
	return r, Outcome{State: Unknown, Lease: Lease{name: l.name, body: l.body, token: r.token}}
}

// handOver marks that the mail may leave from now on. Only the holder of a lease that has
// not ended may do that, and once.
func (r record) handOver(l Lease, now, expires int64) (next record, ok bool) {
	r = r.at(now)
	if r.state != begun || r.token != l.token || now >= r.lease {
		return r, false
	}
	r.state, r.expires = handedOver, max(r.expires, expires)
	return r, true
}

// finish keeps the answer, unless another attempt has the key. The first answer stays.
func (r record) finish(l Lease, answer []byte, now, expires int64) (next record, kept bool) {
	r = r.at(now)
	free := r.state == none || r.state == abandoned
	unclaimed := r.state == handedOver && r.token == token{}
	if !free && !unclaimed && r.token != l.token {
		return r, false
	}
	if r.state == answered {
		return r, true
	}
	return record{state: answered, token: l.token, body: l.body, expires: expires, answer: answer}, true
}

// abandon frees the key, if the lease has it and there is no answer.
func (r record) abandon(l Lease, now int64) (next record, freed bool) {
	r = r.at(now)
	if r.state != begun && r.state != handedOver || r.token != l.token {
		return r, false
	}
	if r.state == begun {
		r.expires = r.lease // then a copy that is still begun binds no other attempt
	}
	r.state = abandoned
	return r, true
}

// recordVersion is the first byte of a record.
const recordVersion = 1

// errDamaged is the cause of an error about a record that no version of encode wrote.
var errDamaged = errors.New("the record of the request is damaged")

// damagedKeep is how many milliseconds a damaged record stays: without it a request could be
// done twice.
const damagedKeep = 24 * 60 * 60 * 1000

// encode writes the record: the version, the state, the token, the body, when it expires,
// and the rest, which is how long the lease ends before that, or the answer. The zero record
// is nil.
func (r record) encode() []byte {
	if r.state == none {
		return nil
	}
	b := append([]byte{recordVersion, byte(r.state)}, r.token[:]...)
	b = append(b, r.body[:]...)
	b = binary.AppendUvarint(b, uint64(r.expires))
	switch r.state {
	case begun, handedOver:
		return binary.AppendUvarint(b, uint64(r.expires-r.lease))
	case answered:
		return append(b, r.answer...)
	}
	return b
}

// parse reads what encode wrote. An answer is not looked into.
func parse(b []byte) (record, error) {
	if len(b) == 0 {
		return record{}, nil
	}
	in := reader{rest: b}
	head := in.bytes(2)
	if in.failed || head[0] != recordVersion || state(head[1]) == none || state(head[1]) > answered {
		return record{}, errDamaged
	}
	r := record{state: state(head[1])}
	copy(r.token[:], in.bytes(uint64(len(r.token))))
	copy(r.body[:], in.bytes(uint64(len(r.body))))
	expires := in.number()
	r.expires = int64(expires)
	switch r.state {
	case begun, handedOver:
		before := in.number()
		if r.lease = int64(expires - before); before > expires {
			return record{}, errDamaged
		}
	case answered:
		r.answer, in.rest = in.rest, nil
	case abandoned:
		r.lease = 0
	}
	if in.failed || len(in.rest) > 0 || expires > math.MaxInt64 {
		return record{}, errDamaged
	}
	return r, nil
}
