package idempotency

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
)

// An Answer is what is given again: the status, the body, and those fields of the header
// that belong to it. Fields of the moment, such as Date, do not.
type Answer struct {
	Status int
	Header []Field
	Body   []byte
}

// A Field is one line of a header.
type Field struct{ Name, Value string }

// MaxAnswer is how long an answer may be as AppendAnswer writes it: 64 KiB. An answer to
// one request is far shorter; the bound keeps a mistake from filling the store.
const MaxAnswer = 64 << 10

// ErrAnswer is the kind of an answer that cannot be kept.
var ErrAnswer = errors.New("an answer has a status of 200 to 599, fields that can stand in a header, and at most 64 KiB")

// Check is the check that every keeper makes before it keeps an answer.
func (a Answer) Check() error {
	if a.Status < 200 || a.Status > 599 {
		return ErrAnswer
	}
	length := maxHead + len(a.Body)
	for _, field := range a.Header {
		if !isName(field.Name) || strings.ContainsAny(field.Value, "\r\n\x00") {
			return ErrAnswer
		}
		length += 2*binary.MaxVarintLen32 + len(field.Name) + len(field.Value)
	}
	if length > MaxAnswer {
		return ErrAnswer
	}
	return nil
}

// Clone is a copy that shares no memory with the answer.
func (a Answer) Clone() Answer {
	return Answer{Status: a.Status, Header: slices.Clone(a.Header), Body: bytes.Clone(a.Body)}
}

// isName reports whether the text can be the name of a field: a token, in the words of
// RFC 9110.
func isName(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		letter := 'a' <= r|0x20 && r|0x20 <= 'z'
		return !letter && !('0' <= r && r <= '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

const (
	answerVersion = 1
	maxHead       = 1 + 2*binary.MaxVarintLen32 // version, status, number of fields
)

// AppendAnswer appends the answer as ParseAnswer reads it: a version, the status, the
// number of fields, the length and text of each name and value, and the body.
func AppendAnswer(b []byte, a Answer) []byte {
	b = append(b, answerVersion)
	b = binary.AppendUvarint(b, uint64(a.Status))
	b = binary.AppendUvarint(b, uint64(len(a.Header)))
	for _, field := range a.Header {
		b = appendText(b, field.Name)
		b = appendText(b, field.Value)
	}
	return append(b, a.Body...)
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// ParseAnswer reads what AppendAnswer wrote, and keeps nothing of b. Anything else is
// ErrAnswer.
func ParseAnswer(b []byte) (Answer, error) {
	if len(b) == 0 || b[0] != answerVersion {
		return Answer{}, ErrAnswer
	}
	r := reader{rest: b[1:]}
	a := Answer{Status: int(min(r.number(), 1000))}
	for fields := r.number(); fields > 0 && !r.failed; fields-- {
		a.Header = append(a.Header, Field{Name: r.text(), Value: r.text()})
	}
	if r.failed {
		return Answer{}, ErrAnswer
	}
	a.Body = bytes.Clone(r.rest)
	if err := a.Check(); err != nil {
		return Answer{}, err
	}
	return a, nil
}

// A reader takes numbers and texts off the front of bytes.
type reader struct {
	rest   []byte
	failed bool
}

// number reads a number. A longer way to write it than the one that is written fails.
func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.rest)
	if r.failed = r.failed || n <= 0 || n > 1 && r.rest[n-1] == 0; r.failed {
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) text() string {
	length := r.number()
	if r.failed = r.failed || length > uint64(len(r.rest)); r.failed {
		return ""
	}
	text := string(r.rest[:length])
	r.rest = r.rest[length:]
	return text
}
