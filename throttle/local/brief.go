package local

import (
	"encoding/binary"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
)

// A brief history is its only send: one word is the reservation, the other when it was
// admitted, in 42 bits, and how many seconds later the history expires, in 22.
const (
	spanBits = 22
	mostSpan = (1<<spanBits - 1) * 1000
	mostAt   = 1<<(64-spanBits) - 1
)

var _ cache.Briefer[throttle.History] = historyCodec{}

// Brief is a history of one send that is kept for whole seconds, up to 48 days.
func (historyCodec) Brief(h throttle.History, expires int64) (b cache.Brief) {
	if len(h) != 1 {
		return b
	}
	at, span := h[0].At, expires-h[0].At
	if at < 0 || at > mostAt || span <= 0 || span > mostSpan || span%1000 != 0 {
		return b
	}
	return cache.Brief{binary.NativeEndian.Uint64(h[0].ID[:]), uint64(at<<spanBits | span/1000)}
}

// onlySend is the send of a brief history, as seen at now.
func onlySend(b cache.Brief, now int64) (a throttle.Admission, found bool) {
	a.At = int64(b[1] >> spanBits)
	span := int64(b[1]&(1<<spanBits-1)) * 1000
	if b == (cache.Brief{}) || now >= a.At+span {
		return a, false
	}
	binary.NativeEndian.PutUint64(a.ID[:], b[0])
	return a, true
}
