package verify

import (
	"fmt"
	"io"
)

// Digits is the length of a code.
const Digits = 6

const (
	codes = 1_000_000
	// fair is the greatest multiple of codes within three bytes. A draw beyond it
	// would make the low codes likelier, and is thrown away.
	fair = (1 << 24) / codes * codes
	// draws bounds how often that may happen in a row. One in 21 draws is thrown
	// away, so a source that loses all of them is not random.
	draws = 100
)

// NewCode makes a code of six digits, each code as likely as any other. It fails
// only if random does.
func NewCode(random io.Reader) (string, error) {
	var draw [3]byte
	for range draws {
		if _, err := io.ReadFull(random, draw[:]); err != nil {
			return "", fmt.Errorf("verify: drawing a code: %w", err)
		}
		if n := int(draw[0])<<16 | int(draw[1])<<8 | int(draw[2]); n < fair {
			return digits(n % codes), nil
		}
	}
	return "", fmt.Errorf("verify: drawing a code: the source is not random")
}

func digits(n int) string {
	var text [Digits]byte
	for i := Digits - 1; i >= 0; i-- {
		text[i] = byte('0' + n%10)
		n /= 10
	}
	return string(text[:])
}
