package verify

import (
	"bytes"
	"cmp"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/throttle"
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

// Note is what is kept about a send until a code of its mailbox is right. Its texts are opaque here.
type Note struct {
	Send  throttle.ID
	Whose string // the caller who asked for the send, of up to 255 bytes
	Text  string // of up to 64 KiB; empty is no note
	Life  int64  // for how many milliseconds it is kept, unless a code is right before

	expires int64
}

func (n Note) compare(other Note) int {
	return cmp.Or(cmp.Compare(n.expires, other.expires), bytes.Compare(n.Send[:], other.Send[:]), cmp.Compare(n.Whose, other.Whose), cmp.Compare(n.Text, other.Text))
}

// maxNotes is how many notes about a mailbox are kept at most, those that expire last.
const maxNotes = 64

// record is what is kept of one mailbox: its codes, ordered by expiry, each hash once, and the notes. A right code
// uses up all codes that expire by usedUntil. When records are merged, that also holds for the codes
// of the other node; codes that expire later stay valid. Records are values; what changes one returns
// another.
type record struct {
	usedUntil int64
	codes     []kept
	notes     []Note
}

// makeRecord returns the record of these codes and notes at now, in any order and with repetitions,
// without those that have expired, are used up or are too many.
func makeRecord(usedUntil int64, codes []kept, notes []Note, now int64) record {
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
	for _, n := range notes {
		if n.expires > now {
			n.Life = 0
			r.notes = append(r.notes, n)
		}
	}
	slices.SortFunc(r.notes, Note.compare)
	r.notes = slices.Compact(r.notes)
	r.notes = r.notes[max(0, len(r.notes)-maxNotes):]
	return r
}

// note returns the record with more notes.
func (r record) note(notes []Note, now int64) record {
	all := slices.Clone(r.notes)
	for _, n := range notes {
		if n.expires = now + n.Life; n.Text != "" {
			all = append(all, n)
		}
	}
	return makeRecord(r.usedUntil, r.codes, all, now)
}

// report returns the record without the notes of a caller, and those.
func (r record) report(whose string, now int64) (next record, notes []Note) {
	next = makeRecord(r.usedUntil, r.codes, r.notes, now)
	for _, n := range next.notes {
		if n.Whose == whose {
			notes = append(notes, n)
		}
	}
	next.notes = slices.DeleteFunc(next.notes, func(n Note) bool { return n.Whose == whose })
	return next, notes
}

// issue returns the record with one more code. It expires after lifetime, and in any case
// after those that are used up, so that it is right also where the clock has stepped back.
func (r record) issue(h hash, now, lifetime int64) record {
	expires := max(now+lifetime, r.usedUntil+1)
	return makeRecord(r.usedUntil, append(slices.Clone(r.codes), kept{h, expires}), r.notes, now)
}

// revoke returns the record without a code and the notes of its send. If by chance two emails had the same code it is
// wrong for both, which is safe.
func (r record) revoke(h hash, send throttle.ID, now int64) record {
	others := slices.DeleteFunc(slices.Clone(r.codes), func(k kept) bool { return k.hash == h })
	notes := slices.DeleteFunc(slices.Clone(r.notes), func(n Note) bool { return n.Send == send })
	return makeRecord(r.usedUntil, others, notes, now)
}

// verify reports what a code is, and uses up all codes and notes if it is right. How long it takes does
// not depend on which code is right.
func (r record) verify(h hash, now int64) (record, Result) {
	r = makeRecord(r.usedUntil, r.codes, r.notes, now)
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
	return makeRecord(r.codesExpire(), nil, nil, now), Correct
}

// expires returns when the record is no longer needed: when its last code and note have expired.
func (r record) expires() int64 {
	if last := len(r.notes) - 1; last >= 0 {
		return max(r.codesExpire(), r.notes[last].expires)
	}
	return r.codesExpire()
}

func (r record) codesExpire() int64 {
	if len(r.codes) == 0 {
		return r.usedUntil
	}
	return r.codes[len(r.codes)-1].expires // later than usedUntil
}

// Merge merges two records of one mailbox: that of the shared records and one that a node has made
// alone. It holds the codes of both, without those that either has used up, and the notes of both. Order and repetition of
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
	r := makeRecord(max(s.usedUntil, o.usedUntil), append(s.codes, o.codes...), append(s.notes, o.notes...), now)
	return r.encode(), r.expires()
}

const recordVersion = 2

// errDamaged is the cause of an error about a record that no version of encode wrote.
var errDamaged = errors.New("the record of the codes is damaged")

// encode writes the version, usedUntil, how many codes there are, the expiry and the hash of each, and the notes:
// expiry, send, and two texts with their lengths. A record of nothing is nil.
func (r record) encode() []byte {
	if r.expires() == 0 {
		return nil
	}
	b := binary.BigEndian.AppendUint64([]byte{recordVersion}, uint64(r.usedUntil))
	b = append(b, byte(len(r.codes)))
	for _, k := range r.codes {
		b = append(binary.BigEndian.AppendUint64(b, uint64(k.expires)), k.hash[:]...)
	}
	for _, n := range r.notes {
		b = append(binary.BigEndian.AppendUint64(b, uint64(n.expires)), n.Send[:]...)
		b = binary.BigEndian.AppendUint16(append(append(b, byte(len(n.Whose))), n.Whose...), uint16(len(n.Text)))
		b = append(b, n.Text...)
	}
	return b
}

// parse reads what encode wrote.
func parse(written []byte) (r record, err error) {
	if len(written) == 0 {
		return r, nil
	}
	in := reader{written[1:], false}
	r.usedUntil = in.number(8)
	for range in.number(1) {
		r.codes = append(r.codes, kept{expires: in.number(8), hash: hash(in.bytes(int64(len(hash{}))))})
	}
	for len(in.rest) > 0 && !in.short {
		n := Note{expires: in.number(8), Send: throttle.ID(in.bytes(int64(len(throttle.ID{}))))}
		n.Whose = string(in.bytes(in.number(1)))
		n.Text = string(in.bytes(in.number(2)))
		r.notes = append(r.notes, n)
	}
	// What encode writes is in order, so this finds all that it never writes.
	if in.short || !bytes.Equal(makeRecord(r.usedUntil, r.codes, r.notes, 0).encode(), written) {
		return record{}, errDamaged
	}
	return r, nil
}

// reader reads from bytes that may be too few: the rest is then zeros.
type reader struct {
	rest  []byte
	short bool
}

func (r *reader) bytes(n int64) (b []byte) {
	if r.short = r.short || n > int64(len(r.rest)); r.short {
		return make([]byte, n)
	}
	b, r.rest = r.rest[:n], r.rest[n:]
	return b
}

// number reads one of so many bytes, up to eight.
func (r *reader) number(size int64) int64 {
	var whole [8]byte
	copy(whole[8-size:], r.bytes(size))
	return int64(binary.BigEndian.Uint64(whole[:]))
}
