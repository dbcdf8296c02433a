package verify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"strings"

	"github.com/mailgate/mailgate/secret"
)

// A Hash stands for a code, and for the address and the purpose that it was mailed for.
// Without the keys of the [Hasher] that made it, it tells nothing about any of them.
type Hash [16]byte

// A Hasher makes hashes. Any number of goroutines may use one.
type Hasher struct{ key, keyForPurposes []byte }

// These keep the keys apart from all others that are made of the same secret, and the codes
// with a purpose from those without.
const (
	hashesOfCodes     = "mailgate verify: hashes of codes, version 1"
	hashesForPurposes = "mailgate verify: hashes of codes for a purpose, version 1"
)

// NewHasher makes a Hasher of the server's secret. All servers that share a [Book] need
// the same one; under another secret the codes that are on their way become wrong.
func NewHasher(of []byte) (*Hasher, error) {
	key, err := secret.Key(of, hashesOfCodes)
	if err != nil {
		return nil, err
	}
	keyForPurposes, err := secret.Key(of, hashesForPurposes)
	return &Hasher{key, keyForPurposes}, err
}

// Hash stands for this code, mailed to this address for this purpose. The case of Latin letters
// makes no difference to the address, since people do not type it alike twice; a tag and dots do.
// That two spellings reach one mailbox is good enough a guess to count sends by, but not
// to take one for the other where somebody proves that they read it.
func (h *Hasher) Hash(of Recipient, code string) Hash {
	mac := hmac.New(sha256.New, h.key)
	if of.Purpose != "" {
		mac = hmac.New(sha256.New, h.keyForPurposes)
		writePart(mac, of.Purpose)
	}
	writePart(mac, strings.Map(lower, of.Address))
	mac.Write([]byte(code))
	var hash Hash
	copy(hash[:], mac.Sum(nil))
	return hash
}

// writePart says where the part ends, so no two rows of parts are written the same.
func writePart(mac io.Writer, part string) {
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
	mac.Write([]byte(part))
}

// lower leaves other letters alone: some that look foreign would become Latin ones, and
// two people's addresses one.
func lower(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}
