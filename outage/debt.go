package outage

import (
	"encoding/binary"
	"errors"
	"unsafe"
)

// A debt is a step that the shared history has not been told of. Of one key and one
// subject there is at most one: a later step takes the place of an earlier.
type debt struct {
	step  step
	what  string // the subject: a reservation, a hash, a token; none where it is the key as a whole
	at    int64  // when it was done; of a code when it expires, and of codes the last of them
	until int64  // from when on nobody needs it any more
	more  string // what else the step needs

	seq uint64 // the order of a key's debts
}

// beingTold is what more there is to a code since the shared book was first told of it, heard
// or not.
const beingTold = "being told"

// A step is what is to be done. The numbers are on disk.
type step byte

const (
	record  step = 1 + iota // an admission
	release                 // one given back, or refused here after a reply that was lost
	add                     // a code
	remove                  // a code whose mail never left
	forget                  // all codes of a mailbox, since one of them was used
	finish                  // the answer to a request
	abandon                 // a request that came to nothing
	begin                   // one that is under way, and that all have to know of before its end
	steps
)

// debtCodec writes a debt as a version, the step, three numbers, the length of the
// subject, the subject, and the rest.
type debtCodec struct{}

const debtVersion = 1

var errDebt = errors.New("not a debt")

// Append implements cache.Codec.
func (debtCodec) Append(b []byte, d debt) []byte {
	b = append(b, debtVersion, byte(d.step))
	b = binary.AppendVarint(b, d.at)
	b = binary.AppendVarint(b, d.until)
	b = binary.AppendUvarint(b, d.seq)
	b = binary.AppendUvarint(b, uint64(len(d.what)))
	b = append(b, d.what...)
	return append(b, d.more...)
}

// Parse implements cache.Codec.
func (debtCodec) Parse(b []byte) (d debt, err error) {
	if len(b) < 2 || b[0] != debtVersion || b[1] == 0 || step(b[1]) >= steps {
		return debt{}, errDebt
	}
	d.step, b = step(b[1]), b[2:]
	for _, number := range []*int64{&d.at, &d.until} {
		value, n := binary.Varint(b)
		if n <= 0 {
			return debt{}, errDebt
		}
		*number, b = value, b[n:]
	}
	seq, n := binary.Uvarint(b)
	if n <= 0 {
		return debt{}, errDebt
	}
	d.seq, b = seq, b[n:]
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return debt{}, errDebt
	}
	d.what, d.more = string(b[n:n+int(length)]), string(b[n+int(length):])
	return d, nil
}

// Weigh implements cache.Codec.
func (debtCodec) Weigh(d debt) int {
	return int(unsafe.Sizeof(d)) + len(d.what) + len(d.more)
}
