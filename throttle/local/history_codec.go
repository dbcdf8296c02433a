package local

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
	"unsafe"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
)

// historyCodec writes a history as a version and its admissions.
type historyCodec struct{}

const (
	codecVersion = 1
	idBytes      = 6
)

var errHistory = errors.New("not a history")

func (historyCodec) Append(b []byte, h throttle.History) []byte {
	return appendAdmissions(append(b, codecVersion), h, 0)
}

func (historyCodec) Parse(b []byte) (throttle.History, error) {
	if len(b) == 0 || b[0] != codecVersion {
		return nil, errHistory
	}
	h, ok := parseAdmissions(b[1:], 0)
	if !ok || !slices.IsSortedFunc(h, func(a, b throttle.Admission) int { return cmp.Compare(a.At, b.At) }) {
		return nil, errHistory
	}
	return h, nil
}

func (historyCodec) Weigh(h throttle.History) int { return weighAdmissions(h) }

// NewEntry has a history of a few admissions beside its entry. Most are so short, and with
// one admission both are in one line of the processor's cache.
func (historyCodec) NewEntry(h throttle.History) *cache.Entry[throttle.History] {
	switch len(h) {
	case 1:
		return cache.NewEntry(func(room *[1]throttle.Admission) throttle.History { return laid(room[:], h) })
	case 2:
		return cache.NewEntry(func(room *[2]throttle.Admission) throttle.History { return laid(room[:], h) })
	case 3, 4:
		return cache.NewEntry(func(room *[4]throttle.Admission) throttle.History { return laid(room[:], h) })
	case 5, 6:
		return cache.NewEntry(func(room *[6]throttle.Admission) throttle.History { return laid(room[:], h) })
	case 7, 8, 9, 10:
		return cache.NewEntry(func(room *[10]throttle.Admission) throttle.History { return laid(room[:], h) })
	}
	return cache.NewEntry(func(*struct{}) throttle.History { return h })
}

// laid is the history in this room, of which nobody gets what is left over.
func laid(room []throttle.Admission, h throttle.History) throttle.History {
	n := copy(room, h)
	return room[:n:n]
}

// appendAdmissions writes, for each admission, the milliseconds since the one before
// and the 48 bits of its id. The first is counted from since.
func appendAdmissions(b []byte, h throttle.History, since int64) []byte {
	for _, a := range h {
		b = binary.AppendVarint(b, a.At-since)
		b = append(b, make([]byte, idBytes)...)
		// Take lets in only ids of the alphabet, so this cannot fail; and of a vacant
		// place, which has none, it leaves all bits zero.
		_, _ = base64.RawURLEncoding.Decode(b[len(b)-idBytes:], a.ID[:])
		since = a.At
	}
	return b
}

// parseAdmissions reads admissions to the end of b.
func parseAdmissions(b []byte, since int64) (throttle.History, bool) {
	h := make(throttle.History, 0, len(b)/(idBytes+1))
	for len(b) > 0 {
		step, rest, ok := cutVarint(b)
		if !ok || len(rest) < idBytes {
			return nil, false
		}
		since += step
		a := throttle.Admission{At: since}
		base64.RawURLEncoding.Encode(a.ID[:], rest[:idBytes])
		h, b = append(h, a), rest[idBytes:]
	}
	return h, true
}

func weighAdmissions(h throttle.History) int {
	return cap(h) * int(unsafe.Sizeof(throttle.Admission{}))
}

// cutVarint takes a number off the front of b. A longer way to write it than the one
// that is written does not pass.
func cutVarint(b []byte) (v int64, rest []byte, ok bool) {
	v, n := binary.Varint(b)
	if n <= 0 || n > 1 && b[n-1] == 0 {
		return 0, nil, false
	}
	return v, b[n:], true
}
