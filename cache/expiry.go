package cache

import (
	"encoding/binary"
	"errors"
	"math"
)

// On disk a value follows its expiry, so that the clock that was handed in decides
// and not the machine's.

func appendExpiry(b []byte, expires int64) []byte { return binary.AppendVarint(b, expires) }

var errExpiry = errors.New("no expiry before the value")

func cutExpiry(b []byte) (expires int64, value []byte, err error) {
	expires, n := binary.Varint(b)
	if n <= 0 {
		return 0, nil, errExpiry
	}
	return expires, b[n:], nil
}

// lifetime is how long there is from now to expires, at least 0.
func lifetime(now, expires int64) int64 {
	switch left := expires - now; {
	case expires <= now:
		return 0
	case left < 0: // more than an int64 holds
		return math.MaxInt64
	default:
		return left
	}
}
