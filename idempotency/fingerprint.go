package idempotency

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// A Fingerprint tells requests apart without keeping them.
type Fingerprint [32]byte

// MinSecret is the shortest secret, in bytes.
const MinSecret = 16

// ErrSecret is the kind of a secret that is too short.
var ErrSecret = errors.New("a secret is 16 bytes or more")

// A Fingerprinter makes fingerprints. Any number of goroutines may use one.
type Fingerprinter struct{ key []byte }

// purpose keeps the key apart from all others that are made of the same secret.
const purpose = "mailgate idempotency: fingerprints of requests, version 1"

// NewFingerprinter makes a Fingerprinter of the server's secret. A request may hold a code
// that is to be mailed, and there are so few codes that a plain hash of the request could
// be turned back into it; with a key it cannot. All servers that share a [Keeper] need the
// same secret: under another one a request that is repeated is taken for a different one,
// and refused.
func NewFingerprinter(secret []byte) (*Fingerprinter, error) {
	if len(secret) < MinSecret {
		return nil, ErrSecret
	}
	key, err := hkdf.Key(sha256.New, secret, nil, purpose, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("making the key for fingerprints: %w", err)
	}
	return &Fingerprinter{key: key}, nil
}

// Of is the fingerprint of a request: the route it was sent to, such as "POST /send-code",
// and the bytes of its body. Two bodies that mean the same are two requests if a byte
// differs; whoever repeats a request sends the same bytes.
func (f *Fingerprinter) Of(route string, body []byte) Fingerprint {
	mac := hmac.New(sha256.New, f.key)
	// The length says where the route ends, so no two pairs are written the same.
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(route))))
	mac.Write([]byte(route))
	mac.Write(body)
	return Fingerprint(mac.Sum(nil))
}
