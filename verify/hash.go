package verify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"github.com/mailgate/mailgate/secret"
)

// A Hash stands for a code and the address it was mailed to. Without the key of the
// [Hasher] that made it, it tells nothing about either.
type Hash [16]byte

// A Hasher makes hashes. Any number of goroutines may use one.
type Hasher struct{ key []byte }

// purpose keeps the key apart from all others that are made of the same secret.
const purpose = "mailgate verify: hashes of codes, version 1"

// NewHasher makes a Hasher of the server's secret. All servers that share a [Book] need
// the same one; under another secret the codes that are on their way become wrong.
func NewHasher(of []byte) (*Hasher, error) {
	key, err := secret.Key(of, purpose)
	if err != nil {
		return nil, err
	}
	return &Hasher{key: key}, nil
}

// Hash stands for this code, mailed to this address. The case of Latin letters makes no
// difference to the address, since people do not type it alike twice; a tag and dots do.
// That two spellings reach one mailbox is good enough a guess to count sends by, but not
// to take one for the other where somebody proves that they read it.
func (h *Hasher) Hash(address, code string) Hash {
	mac := hmac.New(sha256.New, h.key)
	address = strings.Map(lower, address)
	// The length says where the address ends, so no two pairs are written the same.
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(address))))
	mac.Write([]byte(address))
	mac.Write([]byte(code))
	var hash Hash
	copy(hash[:], mac.Sum(nil))
	return hash
}

// lower leaves other letters alone: some that look foreign would become Latin ones, and
// two people's addresses one.
func lower(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}
