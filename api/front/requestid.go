package front

import (
	"math/rand/v2"

	"github.com/mailgate/mailgate/internal/apikey"
)

// RequestID takes the caller's id if it is 1 to 64 letters, digits, dots, _ and -, and makes one otherwise, as no address
// may be in the log. It shares no memory with given.
func RequestID(given []byte) string {
	if apikey.IsName(string(given)) {
		return string(given)
	}
	const digits = "0123456789abcdef"
	var id [16]byte
	for i, n := 0, rand.Uint64(); i < len(id); i, n = i+1, n>>4 {
		id[i] = digits[n&15]
	}
	return string(id[:])
}
