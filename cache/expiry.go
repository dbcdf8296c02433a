package cache

import (
	"encoding/binary"
	"errors"
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
