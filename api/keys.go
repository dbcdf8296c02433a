package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"slices"
	"strings"
)

const maxKeyName = 64

// Keys are named secrets that open routes. The zero Keys has none. Keys hold the SHA-256 of each
// secret, so printing them reveals nothing.
type Keys struct {
	keys []key
}

type key struct {
	name string
	sum  [sha256.Size]byte
}

// ParseKeys reads "name:secret,name2:secret2"; an empty text has no keys. A name is what logs show
// of the key: letters, digits and . _ -. It may occur twice while the key's secret is changed, and
// both are one caller. A secret is any visible ASCII but the comma. The error gives the position of
// the invalid key instead of its name, which may be half of a secret that was written without one.
func ParseKeys(text string) (Keys, error) {
	var keys Keys
	if strings.TrimSpace(text) == "" {
		return keys, nil
	}
	for i, entry := range strings.Split(text, ",") {
		name, secret, ok := strings.Cut(strings.TrimSpace(entry), ":")
		wrong := keys.problem(name, secret, ok)
		if wrong != "" {
			return Keys{}, fmt.Errorf("key %d %s", i+1, wrong)
		}
		keys.keys = append(keys.keys, key{name, sha256.Sum256([]byte(secret))})
	}
	return keys, nil
}

// problem returns what is wrong with one more key, or "".
func (k Keys) problem(name, secret string, separated bool) string {
	switch {
	case !separated:
		return "must be written name:secret"
	case name == "" || len(name) > maxKeyName || strings.ContainsFunc(name, notInName):
		return "needs a name of 1 to 64 letters, digits, dots, _ and - before the colon"
	case secret == "":
		return "has no secret after the colon"
	case strings.ContainsFunc(secret, notVisible):
		return "has a secret with a character that is not visible ASCII"
	}
	sum, namesakes := sha256.Sum256([]byte(secret)), 0
	for _, other := range k.keys {
		if other.sum == sum {
			return "has the secret of a key before it"
		}
		if other.name == name {
			namesakes++
		}
	}
	if namesakes > 1 {
		return "has the name of two keys before it"
	}
	return ""
}

func notInName(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return r != '.' && r != '_' && r != '-'
}

func notVisible(r rune) bool { return r <= ' ' || r > '~' }

// IsZero reports whether there are no keys, so that requests need none.
func (k Keys) IsZero() bool { return len(k.keys) == 0 }

// find returns the name of the key whose secret has this hash. It compares all hashes, each in
// full, so that the time it takes says nothing about any secret.
func (k Keys) find(sum [sha256.Size]byte) (name string, ok bool) {
	found := -1
	for i := range k.keys {
		same := subtle.ConstantTimeCompare(sum[:], k.keys[i].sum[:])
		found = subtle.ConstantTimeSelect(same, i, found)
	}
	if found < 0 {
		return "", false
	}
	return k.keys[found].name, true
}

// Shares reports whether both have a secret in common.
func (k Keys) Shares(other Keys) bool {
	return slices.ContainsFunc(k.keys, func(mine key) bool {
		return slices.ContainsFunc(other.keys, func(theirs key) bool { return mine.sum == theirs.sum })
	})
}

// bearer returns the secret in an Authorization header.
func bearer(header []byte) (secret []byte, ok bool) {
	const scheme = "bearer "
	if len(header) <= len(scheme) || !strings.EqualFold(string(header[:len(scheme)]), scheme) {
		return nil, false
	}
	return header[len(scheme):], true
}
