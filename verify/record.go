package verify

import (
	"bytes"
	"cmp"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/mailgate/mailgate/internal/keyed"
)

// maxCodes is how many codes of a mailbox are kept at most; the one that expires first is forgotten
// for a further one. Without a bound each more code would make a guess likelier to be right. It is
// rarely met, since a mailbox is sent far fewer than 16 emails in the lifetime of a code.
const maxCodes = 16

// kept is a code on record.
type kept struct {
	hash    hash
	expires int64 // when the code expires: the first moment at which it is wrong
}

func (k kept) compare(other kept) int {
	return cmp.Or(cmp.Compare(k.expires, other.expires), bytes.Compare(k.hash[:], other.hash[:]))
}

// record is what is kept of one mailbox: its codes, ordered by expiry, each hash once. A right code
// uses up all codes that expire by usedUntil. When records are merged, that also holds for the codes
// of the other node; codes that expire later stay valid. Records are values; what changes one returns
// another.
type record struct {
	usedUntil int64
	codes     []kept
}

// makeRecord returns the record of these codes at now, in any order and with repetitions,
// without those that have expired, are used up or are too many.
func makeRecord(usedUntil int64, codes []kept, now int64) record {
	latest := map[hash]int64{}
	for _, k := range codes {
		if k.expires > max(now, usedUntil) {
			latest[k.hash] = max(latest[k.hash], k.expires)
		}
	}
	var r record
	if usedUntil > now {
		r.usedUntil = usedUntil
	}
	for h, expires := range latest {
		r.codes = append(r.codes, kept{h, expires})
	}
	slices.SortFunc(r.codes, kept.compare)
	r.codes = r.codes[max(0, len(r.codes)-maxCodes):]
	return r
}

// issue returns the record with one more code. It expires after lifetime, and in any case
// after those that are used up, so that it is right also where the clock has stepped back.
func (r record) issue(h hash, now, lifetime int64) record {
	expires := max(now+lifetime, r.usedUntil+1)
	return makeRecord(r.usedUntil, append(slices.Clone(r.codes), kept{h, expires}), now)
}

// revoke returns the record without a code. If by chance two emails had the same code it is
// wrong for both, which is safe.
func (r record) revoke(h hash, now int64) record {
	others := slices.DeleteFunc(slices.Clone(r.codes), func(k kept) bool { return k.hash == h })
	return makeRecord(r.usedUntil, others, now)
}

// verify reports what a code is, and uses up all codes if it is right. How long it takes does
// not depend on which code is right.
func (r record) verify(h hash, now int64) (record, Result) {
	r = makeRecord(r.usedUntil, r.codes, now)
	right := 0
	for _, k := range r.codes {
		right |= subtle.ConstantTimeCompare(k.hash[:], h[:])
	}
	switch {
	case len(r.codes) == 0:
		return r, Expired
	case right == 0:
		return r, Incorrect
	}
	return makeRecord(r.expires(), nil, now), Correct
}

// expires returns when the record is no longer needed: when its last code has expired.
func (r record) expires() int64 {
	if len(r.codes) == 0 {
		return r.usedUntil
	}
	return r.codes[len(r.codes)-1].expires // later than usedUntil
}

// Merge merges two records of one mailbox: that of the shared records and one that a node has made
// alone. It holds the codes of both, without those that either has used up. Order and repetition of
// merges make no difference. A damaged shared record stays; a damaged own one is ignored.
func Merge(shared, own []byte, now int64) (next []byte, expires int64) {
	s, err := parse(shared)
	if err != nil {
		return shared, now + keyed.DamagedLife
	}
	o, err := parse(own)
	if err != nil {
		o = record{}
	}
	r := makeRecord(max(s.usedUntil, o.usedUntil), append(s.codes, o.codes...), now)
	return r.encode(), r.expires()
}

const recordVersion = 1

// errDamaged is the cause of an error about a record that no version of encode wrote.
var errDamaged = errors.New("the record of the codes is damaged")

// encode writes the version, usedUntil, and the expiry and the hash of each code. A record of
// nothing is nil.
func (r record) encode() []byte {
	if r.expires() == 0 {
		return nil
	}
	b := binary.BigEndian.AppendUint64([]byte{recordVersion}, uint64(r.usedUntil))
	for _, k := range r.codes {
		b = append(binary.BigEndian.AppendUint64(b, uint64(k.expires)), k.hash[:]...)
	}
	return b
}

// parse reads what encode wrote.
func parse(written []byte) (r record, err error) {
	const head, each = 1 + 8, 8 + len(hash{})
	if len(written) == 0 {
		return r, nil
	}
	if len(written) < head || (len(written)-head)%each != 0 {
		return r, errDamaged
	}
	r.usedUntil = int64(binary.BigEndian.Uint64(written[1:]))
	for b := written[head:]; len(b) > 0; b = b[each:] {
		r.codes = append(r.codes, kept{hash(b[8:each]), int64(binary.BigEndian.Uint64(b))})
	}
	// What encode writes is in order, so this finds all that it never writes.
	if !bytes.Equal(makeRecord(r.usedUntil, r.codes, 0).encode(), written) {
		return record{}, errDamaged
	}
	return r, nil
}
