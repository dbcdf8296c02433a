package secret

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"sync"
)

// Names makes the names by which logs call a mailbox or anything else that they must not show:
// keyed hashes, which cannot be computed or undone without the key.
type Names struct{ macs sync.Pool }

// NewNames returns the names under a key.
func NewNames(key []byte) *Names {
	n := &Names{}
	n.macs.New = func() any { return hmac.New(sha256.New, key) }
	return n
}

// Of returns the name of a text, ten hexadecimal digits.
func (n *Names) Of(text string) string {
	mac := n.macs.Get().(hash.Hash) // one that was used before has prepared its key
	defer n.macs.Put(mac)
	mac.Reset()
	_, _ = io.WriteString(mac, text)
	var sum [sha256.Size]byte
	return hex.EncodeToString(mac.Sum(sum[:0])[:5])
}
