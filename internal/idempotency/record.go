package idempotency

import (
	"encoding/binary"
	"errors"
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

// begin answers a request at now. With Started, next is begun under the lease until leaseEnds.
// Where an attempt has begun, was not handed over, and its lease has ended, begin replaces the
// record if over is its token, and otherwise returns leaseEnded.
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
		return r, Outcome{State: InFlight}
	}
	return r, Outcome{State: Unknown, Lease: Lease{name: l.name, body: l.body, token: r.token}}
}

// handOver marks that the email may leave from now on. Only the holder of a lease that has
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

// head is the bytes of a record but for the answer, which comes behind.
type head struct {
	Version        byte
	State          state
	Token          token
	Body           Fingerprint
	Lease, Expires int64
}

// encode writes a record; the zero record is nil.
func (r record) encode() []byte {
	if r.state == none {
		return nil
	}
	b, _ := binary.Append(nil, binary.BigEndian, head{recordVersion, r.state, r.token, r.body, r.lease, r.expires}) // never fails
	return append(b, r.answer...)
}

// parse reads what encode wrote. An answer is not looked into.
func parse(b []byte) (record, error) {
	if len(b) == 0 {
		return record{}, nil
	}
	var h head
	n, err := binary.Decode(b, binary.BigEndian, &h)
	answer := b[n:]
	if err != nil || h.Version != recordVersion || h.State == none || h.State > answered || len(answer) > 0 && h.State != answered {
		return record{}, errDamaged
	}
	return record{state: h.State, token: h.Token, body: h.Body, lease: h.Lease, expires: h.Expires, answer: answer}, nil
}
