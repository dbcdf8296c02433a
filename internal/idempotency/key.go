package idempotency

import (
	"errors"
	"strconv"
	"strings"
)

// maxKey is the longest key, in bytes.
const maxKey = 255

// ErrKey is the kind of a malformed key or header field.
var ErrKey = errors.New("an idempotency key is 1 to 255 visible ASCII characters, in double quotes")

// ParseKey reads the header field Idempotency-Key. The draft makes it a String of RFC 9651: in
// double quotes, with a backslash before a quote or a backslash that is meant. Most callers send
// the bare key, which is accepted if it has no quote, backslash, comma or semicolon. So two fields
// in one request, which arrive joined by a comma, are refused in either form, and so is anything
// after a String. Spaces around the key are ignored.
func ParseKey(field string) (string, error) {
	field = strings.Trim(field, " \t")
	key := field
	if strings.HasPrefix(field, `"`) {
		key = unquote(field)
	} else if strings.ContainsAny(field, `"\,;`) {
		return "", ErrKey
	}
	if key == "" || len(key) > maxKey {
		return "", ErrKey
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return "", ErrKey
		}
	}
	return key, nil
}

// unquote reads a String that is the whole text, which begins with a quote. It returns
// nothing for any other text.
func unquote(text string) string {
	var key strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			if i < len(text)-1 {
				return ""
			}
			return key.String()
		case '\\':
			if i++; i == len(text) || text[i] != '"' && text[i] != '\\' {
				return ""
			}
			key.WriteByte(text[i])
		default:
			key.WriteByte(c)
		}
	}
	return ""
}

// Fingerprint tells requests apart without keeping them: a keyed hash of the route and the body. A
// request may hold a code, and there are so few codes that a plain hash could be turned back into
// it.
type Fingerprint [16]byte

// Name is what a request is known by: who sent it, and the key.
type Name struct {
	Caller string // such as the name of an API key
	Key    string // as ParseKey returns it
}

// text returns the key of the record. The caller's length is in front, so that no two names
// have one text.
func (n Name) text() string {
	return strconv.Itoa(len(n.Caller)) + ":" + n.Caller + n.Key
}
