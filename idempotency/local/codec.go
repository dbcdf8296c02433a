package local

import (
	"encoding/binary"
	"errors"
	"unsafe"

	"github.com/mailgate/mailgate/idempotency"
)

// recordCodec writes a record as a version, the token, the fingerprint, the expiry and,
// unless it is in flight, the answer.
type recordCodec struct{}

const codecVersion = 1

var errRecord = errors.New("not the record of a request")

func (recordCodec) Append(b []byte, r idempotency.Record) []byte {
	b = append(b, codecVersion)
	b = append(b, r.Token[:]...)
	b = append(b, r.Body[:]...)
	b = binary.AppendVarint(b, r.Expires)
	if r.Answer != nil {
		b = idempotency.AppendAnswer(b, *r.Answer)
	}
	return b
}

func (recordCodec) Parse(b []byte) (r idempotency.Record, err error) {
	if len(b) < 1+len(r.Token)+len(r.Body) || b[0] != codecVersion {
		return r, errRecord
	}
	b = b[1+copy(r.Token[:], b[1:]):]
	b = b[copy(r.Body[:], b):]
	expires, n := binary.Varint(b)
	// A longer way to write a number than the one that is written does not pass.
	if n <= 0 || n > 1 && b[n-1] == 0 || r.Token.IsZero() {
		return idempotency.Record{}, errRecord
	}
	r.Expires = expires
	if b = b[n:]; len(b) > 0 {
		answer, err := idempotency.ParseAnswer(b)
		if err != nil {
			return idempotency.Record{}, errRecord
		}
		r.Answer = &answer
	}
	return r, nil
}

func (recordCodec) Weigh(r idempotency.Record) int {
	weight := int(unsafe.Sizeof(r))
	if r.Answer != nil {
		weight += int(unsafe.Sizeof(*r.Answer)) + cap(r.Answer.Body)
		for _, field := range r.Answer.Header {
			weight += int(unsafe.Sizeof(field)) + len(field.Name) + len(field.Value)
		}
	}
	return weight
}
