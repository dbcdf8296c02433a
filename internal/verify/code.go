package verify

import (
	"crypto/rand"
	"errors"
	"math/big"
	"strconv"
	"unicode"
)

// digits is the length of a code, and codes how many there are.
const (
	digits = 6
	codes  = 1_000_000
)

// NewCode makes a code of six digits, each code as likely as any other.
func NewCode() string {
	n, _ := rand.Int(rand.Reader, big.NewInt(codes)) // never fails
	return strconv.FormatInt(codes+n.Int64(), 10)[1:]
}

// ErrCode is the error for a text that cannot be a code.
var ErrCode = errors.New("a code is six digits")

// maxTyped is the longest text, in bytes, that is searched for a code.
const maxTyped = 64

// zeros are the zeros of the digits that keyboards type: Latin, Arabic, Persian, Devanagari
// and full-width. The nine others follow each.
var zeros = [...]rune{'0', '٠', '۰', '०', '０'}

// ParseCode reads a code as a person types or pastes it, and returns its six digits. Spaces, dashes
// and invisible characters are skipped: email programs and people write "123 456" and "123-456",
// and copying out of an email picks up more. The digits may be of any of the scripts in which
// keyboards type them. None of this makes guessing easier, since each text is at most one code.
// Anything else is [ErrCode].
func ParseCode(typed string) (string, error) {
	if len(typed) > maxTyped {
		return "", ErrCode
	}
	code := make([]byte, 0, digits)
	for _, r := range typed {
		if unicode.IsSpace(r) || unicode.In(r, unicode.Pd, unicode.Cf) {
			continue
		}
		digit, ok := digitOf(r)
		if !ok {
			return "", ErrCode
		}
		code = append(code, digit)
	}
	if len(code) != digits {
		return "", ErrCode
	}
	return string(code), nil
}

func digitOf(r rune) (digit byte, ok bool) {
	for _, zero := range zeros {
		if zero <= r && r <= zero+9 {
			return '0' + byte(r-zero), true
		}
	}
	return 0, false
}
