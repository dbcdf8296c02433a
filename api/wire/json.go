package wire

import (
	"time"
	"unicode/utf8"
)

// AppendString adds text as a JSON string. What is not UTF-8 becomes U+FFFD.
func AppendString(b []byte, text string) []byte {
	b = append(b, '"')
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			b = appendASCII(b, c)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		b = utf8.AppendRune(b, r)
		i += n
	}
	return append(b, '"')
}

func appendASCII(b []byte, c byte) []byte {
	const digits = "0123456789abcdef"
	switch {
	case c == '"' || c == '\\':
		return append(b, '\\', c)
	case c < ' ':
		return append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
	}
	return append(b, c)
}

// AppendTime adds a moment as a JSON string, to the millisecond and in UTC.
func AppendTime(b []byte, ms int64) []byte {
	b = append(b, '"')
	b = time.UnixMilli(ms).UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
	return append(b, '"')
}

// Seconds is a length of time for a header that takes whole seconds: rounded up, so
// that whoever waits that long has waited long enough.
func Seconds(ms int64) int64 {
	seconds := ms / 1000
	if ms%1000 > 0 {
		seconds++
	}
	return seconds
}
