// Package secret makes keys of the one secret that all servers share. Each key has a
// purpose, and nothing made for one passes for another.
package secret

import (
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
)

// MinLength is the shortest secret, in bytes. It must be hopeless to guess: 16 bytes of
// chance are, a phrase is not.
const MinLength = 16

// ErrTooShort is the kind of a secret that has fewer.
var ErrTooShort = errors.New("a secret is 16 bytes or more")

// Key is 32 bytes that tell nothing about the secret, nor about the keys for other
// purposes. The same two give the same key on all servers.
func Key(of []byte, purpose string) ([]byte, error) {
	if len(of) < MinLength {
		return nil, ErrTooShort
	}
	key, err := hkdf.Key(sha256.New, of, nil, purpose, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return key, nil
}
