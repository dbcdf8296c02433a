// Package apikey reads the keys of callers and operators.
package apikey

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"slices"
	"strings"
)

// Keys are named secrets that open routes. The zero Keys has none. Keys hold the SHA-256 of each
// secret, so printing them reveals nothing.
type Keys struct {
	keys []key
}

type key struct {
	name string
	sum  [sha256.Size]byte
}

// Parse reads "name:secret,name2:secret2"; an empty text has no keys. A name is what logs show of the
// key: letters, digits and . _ -. It may occur twice while the key's secret is changed, and both are
// one caller. A secret is any visible ASCII but the comma, and what refuse returns "" for. The error
// gives the position of the invalid key instead of its name, which may be half of a secret that was
// written without one.
func Parse(text string, refuse func(secret string) (why string)) (Keys, error) {
	var keys Keys
	if strings.TrimSpace(text) == "" {
		return keys, nil
	}
	for i, entry := range strings.Split(text, ",") {
		name, secret, ok := strings.Cut(strings.TrimSpace(entry), ":")
		wrong := keys.problem(name, secret, ok)
		if wrong == "" && refuse != nil {
			wrong = refuse(secret)
		}
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
	case !IsName(name):
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

// IsName reports whether a text can be the name of a key.
func IsName(text string) bool {
	const most = 64
	return text != "" && len(text) <= most && !strings.ContainsFunc(text, notInName)
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

// Names returns the names of the keys, in order.
func (k Keys) Names() []string {
	names := make([]string, len(k.keys))
	for i, key := range k.keys {
		names[i] = key.name
	}
	return names
}

// Find returns the name of the key with this secret. It compares the hashes of all, each in full, so
// that the time it takes says nothing about any secret.
func (k Keys) Find(secret []byte) (name string, ok bool) {
	found, sum := -1, sha256.Sum256(secret)
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
