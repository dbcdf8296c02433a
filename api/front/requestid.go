package front

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"

	"github.com/mailgate/mailgate/internal/apikey"
)

// RequestID takes the caller's id if it is 1 to 64 letters, digits, dots, _ and -, and makes one otherwise, as no address
// may be in the log. It shares no memory with given.
func RequestID(given []byte) string {
	if apikey.IsName(string(given)) {
		return string(given)
	}
	return hex.EncodeToString(binary.BigEndian.AppendUint64(nil, rand.Uint64()))
}
