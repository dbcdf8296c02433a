package idempotency

import (
	"errors"
	"strconv"
	"strings"
)

// MaxKey and MaxCaller are the longest key and the longest name of a caller, in bytes.
const (
	MaxKey    = 255
	MaxCaller = 255
)

// ErrKey is the kind of a key, or of a field with one, that will not do.
var ErrKey = errors.New("an idempotency key is 1 to 255 visible ASCII characters, in double quotes")

// ParseKey reads the field Idempotency-Key. The draft makes it a String of RFC 9651: in
// double quotes, with a backslash before a quote or a backslash that is meant. Most
// callers send the bare key, as the services did that had such a field before there was a
// draft; that is the same key, but must do without quotes, backslashes, commas and
// semicolons. So two fields in one request, which arrive joined by a comma, are refused
// in either form, and so is anything that follows a String. Spaces around are not part
// of it.
func ParseKey(field string) (string, error) {
	field = strings.Trim(field, " \t")
	key := field
	if strings.HasPrefix(field, `"`) {
		key = unquote(field)
	} else if strings.ContainsAny(field, `"\,;`) {
		return "", ErrKey
	}
	if err := CheckKey(key); err != nil {
		return "", err
	}
	return key, nil
}

// unquote reads a String that begins with a quote and is the whole text; of another it has
// nothing.
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

// CheckKey is the check that ParseKey makes of what it has read.
func CheckKey(key string) error {
	if key == "" || len(key) > MaxKey {
		return ErrKey
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return ErrKey
		}
	}
	return nil
}

// A Name is what a request is known by: who sent it, and the key.
type Name struct {
	Caller string // any text of up to MaxCaller bytes, such as the name of an API key
	Key    string // as ParseKey returns it
}

// ErrCaller is the kind of a caller's name that is too long.
var ErrCaller = errors.New("the name of a caller is at most 255 bytes long")

// Check is the check that every keeper makes first.
func (n Name) Check() error {
	if len(n.Caller) > MaxCaller {
		return ErrCaller
	}
	return CheckKey(n.Key)
}

// Text is the name as one text, to keep a record under. The caller's length stands in
// front, so that no two names have one text whatever is in them.
func (n Name) Text() string {
	return strconv.Itoa(len(n.Caller)) + ":" + n.Caller + n.Key
}
