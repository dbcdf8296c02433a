package secret

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"sync"
)

// MAC hashes texts under a key, which Key has derived and which is prepared once. It may be used by any number of
// goroutines.
type MAC struct{ states sync.Pool }

// state makes one hash at a time. Its bytes need no memory of their own.
type state struct {
	hash.Hash
	text, sum []byte
}

// NewMAC returns the MAC under a key.
func NewMAC(key []byte) *MAC {
	m := &MAC{}
	m.states.New = func() any { return &state{Hash: hmac.New(sha256.New, key)} }
	return m
}

// Sum hashes texts. Without the key the hash tells nothing about them, even where there are few
// possible ones. No two lists of texts have one hash.
func (m *MAC) Sum(texts ...string) (sum [16]byte) {
	s := m.states.Get().(*state)
	defer m.states.Put(s)
	s.Reset()
	for _, text := range texts {
		s.text = append(binary.BigEndian.AppendUint64(s.text[:0], uint64(len(text))), text...) // the length says where it ends
		s.Write(s.text)
	}
	s.sum = s.Hash.Sum(s.sum[:0])
	return [16]byte(s.sum)
}

// Name returns ten hexadecimal digits by which logs call a mailbox or anything else that they must not show.
func (m *MAC) Name(texts ...string) string {
	sum := m.Sum(texts...)
	return hex.EncodeToString(sum[:5])
}
