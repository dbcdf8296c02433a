package local

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"unsafe"

	"github.com/mailgate/mailgate/throttle"
)

// historyCodec writes a history as a version and then, for each send, the
// milliseconds since the one before and the 48 bits of its id.
type historyCodec struct{}

const (
	codecVersion = 1
	idBytes      = 6
)

var errHistory = errors.New("not a history")

func (historyCodec) Append(b []byte, h throttle.History) []byte {
	b = append(b, codecVersion)
	before := int64(0)
	for _, a := range h {
		b = binary.AppendVarint(b, a.At-before)
		b = append(b, make([]byte, idBytes)...)
		// Take lets in only ids of the alphabet, so this cannot fail.
		_, _ = base64.RawURLEncoding.Decode(b[len(b)-idBytes:], a.ID[:])
		before = a.At
	}
	return b
}

func (historyCodec) Parse(b []byte) (throttle.History, error) {
	if len(b) == 0 || b[0] != codecVersion {
		return nil, errHistory
	}
	b = b[1:]
	h := make(throttle.History, 0, len(b)/(idBytes+1))
	for before := int64(0); len(b) > 0; {
		step, n := binary.Varint(b)
		if n <= 0 || len(b) < n+idBytes || len(h) > 0 && step < 0 {
			return nil, errHistory
		}
		a := throttle.Admission{At: before + step}
		base64.RawURLEncoding.Encode(a.ID[:], b[n:n+idBytes])
		h = append(h, a)
		b, before = b[n+idBytes:], a.At
	}
	return h, nil
}

func (historyCodec) Weigh(h throttle.History) int {
	return cap(h) * int(unsafe.Sizeof(throttle.Admission{}))
}
