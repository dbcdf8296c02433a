package idempotency

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"github.com/mailgate/mailgate/secret"
)

// A Fingerprint tells requests apart without keeping them.
type Fingerprint [32]byte

// A Fingerprinter makes fingerprints. Any number of goroutines may use one.
type Fingerprinter struct{ key []byte }

// purpose keeps the key apart from all others that are made of the same secret.
const purpose = "mailgate idempotency: fingerprints of requests, version 1"

// NewFingerprinter makes a Fingerprinter of the server's secret. A request may hold a code
// that is to be mailed, and there are so few codes that a plain hash of the request could
// be turned back into it; with a key it cannot. All servers that share a [Keeper] need the
// same secret: under another one a request that is repeated is taken for a different one,
// and refused.
func NewFingerprinter(of []byte) (*Fingerprinter, error) {
	key, err := secret.Key(of, purpose)
	if err != nil {
		return nil, err
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
