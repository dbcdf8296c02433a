package secret

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"sync"
)

// Names makes the names by which logs call a mailbox or anything else that they must not show:
// keyed hashes, which cannot be computed or undone without the key.
type Names struct{ macs sync.Pool }

// named is what makes one name at a time. Its key is prepared, and its bytes need no memory of their own.
type named struct {
	hash.Hash
	text, sum []byte
}

// NewNames returns the names under a key.
func NewNames(key []byte) *Names {
	n := &Names{}
	n.macs.New = func() any { return &named{Hash: hmac.New(sha256.New, key)} }
	return n
}

// Of returns the name of a text, ten hexadecimal digits.
func (n *Names) Of(text string) string {
	mac := n.macs.Get().(*named)
	defer n.macs.Put(mac)
	mac.Reset()
	mac.text = append(mac.text[:0], text...)
	mac.Write(mac.text)
	mac.sum = mac.Sum(mac.sum[:0])
	mac.text = hex.AppendEncode(mac.text[:0], mac.sum[:5])
	return string(mac.text)
}
