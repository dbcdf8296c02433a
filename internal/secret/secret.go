// Package secret derives keys from the secret that all servers share, one for each purpose.
package secret

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// MinLength is the least length of a secret, in bytes: 16 random bytes cannot be guessed.
const MinLength = 16

// ErrTooShort is the error for a shorter secret.
var ErrTooShort = errors.New("the secret must have at least 16 bytes")

// Key derives 32 bytes from a secret and a purpose. A key reveals nothing about the secret or
// about keys for other purposes.
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

// digestOf is the purpose of a Digest.
const digestOf = "mailgate secret: digest, version 1"

// Digest returns four hexadecimal digits by which operators compare the secrets of servers. One in
// 65,536 secrets has the same digest, so it confirms no guess.
func Digest(of []byte) (string, error) {
	key, err := Key(of, digestOf)
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(key[:2]), nil
}
