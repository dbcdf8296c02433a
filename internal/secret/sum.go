package secret

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"io"
)

// Sum hashes texts with a key, which Key has derived. Without the key the hash tells nothing about
// them, even where there are few possible ones. No two lists of texts have one hash.
func Sum(key []byte, texts ...string) (sum [16]byte) {
	mac := hmac.New(sha256.New, key)
	for _, text := range texts {
		// The length says where a text ends.
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
		_, _ = io.WriteString(mac, text)
	}
	copy(sum[:], mac.Sum(nil))
	return sum
}
