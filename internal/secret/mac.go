package secret

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
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

func (m *MAC) begin() *state {
	s := m.states.Get().(*state)
	s.Reset()
	return s
}

func (s *state) add(text string) {
	s.text = append(s.text[:0], text...)
	s.Write(s.text)
}

func (s *state) end() []byte {
	s.sum = s.Sum(s.sum[:0])
	return s.sum
}

// Sum hashes texts. Without the key the hash tells nothing about them, even where there are few
// possible ones. No two lists of texts have one hash.
func (m *MAC) Sum(texts ...string) (sum [16]byte) {
	s := m.begin()
	defer m.states.Put(s)
	for _, text := range texts {
		s.text = binary.BigEndian.AppendUint64(s.text[:0], uint64(len(text))) // which says where the text ends
		s.Write(s.text)
		s.add(text)
	}
	copy(sum[:], s.end())
	return sum
}
