package idempotency

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"github.com/mailgate/mailgate/internal/secret"
)

// Fingerprint tells requests apart without keeping them.
type Fingerprint [16]byte

// Fingerprinter makes fingerprints. It may be used by any number of goroutines.
type Fingerprinter struct{ key []byte }

// purpose keeps the key apart from all others that are made of the same secret.
const purpose = "mailgate idempotency: fingerprints of requests, version 1"

// NewFingerprinter makes a Fingerprinter of the server's secret. A request may hold a code
// that is to be mailed, and there are so few codes that a plain hash of the request could be
// turned back into it; a keyed one cannot. Servers that share records need the same secret:
// under another one a repeated request is a mismatch.
func NewFingerprinter(of []byte) (*Fingerprinter, error) {
	key, err := secret.Key(of, purpose)
	if err != nil {
		return nil, err
	}
	return &Fingerprinter{key: key}, nil
}

// Of returns the fingerprint of a request: the route it was sent to, such as
// "POST /send-code", and the bytes of its body. Bodies that differ in one byte are different
// requests, even where they mean the same.
func (f *Fingerprinter) Of(route string, body []byte) (print Fingerprint) {
	mac := hmac.New(sha256.New, f.key)
	// The length says where the route ends, so no two pairs are written the same.
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(route))))
	mac.Write([]byte(route))
	mac.Write(body)
	copy(print[:], mac.Sum(nil))
	return print
}
