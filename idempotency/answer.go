package idempotency

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
)

// Answer is what is given again: the status, the body, and the header fields that belong to
// them. Fields of the moment, such as Date, do not.
type Answer struct {
	Status int
	Header []Field
	Body   []byte
}

// Field is one line of a header.
type Field struct{ Name, Value string }

// MaxAnswer is how many bytes an answer may take on record. Answers are far shorter; the
// bound keeps a mistake from filling the store.
const MaxAnswer = 64 << 10

// ErrAnswer is the kind of an answer that cannot be kept.
var ErrAnswer = errors.New("an answer has a status of 200 to 599, valid header fields, and at most 64 KiB")

// encode writes the status, the number of fields, the length and text of each name and
// value, and the body.
func (a Answer) encode() ([]byte, error) {
	if a.Status < 200 || a.Status > 599 {
		return nil, ErrAnswer
	}
	b := binary.AppendUvarint(nil, uint64(a.Status))
	b = binary.AppendUvarint(b, uint64(len(a.Header)))
	for _, field := range a.Header {
		if !isToken(field.Name) || strings.ContainsAny(field.Value, "\r\n\x00") {
			return nil, ErrAnswer
		}
		b = appendText(b, field.Name)
		b = appendText(b, field.Value)
	}
	if len(b)+len(a.Body) > MaxAnswer {
		return nil, ErrAnswer
	}
	return append(b, a.Body...), nil
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// isToken reports whether the text can be the name of a field: a token of RFC 9110.
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		letter := 'a' <= r|0x20 && r|0x20 <= 'z'
		return !letter && !('0' <= r && r <= '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// parseAnswer reads what encode wrote, and keeps nothing of b.
func parseAnswer(b []byte) (Answer, error) {
	r := reader{rest: b}
	a := Answer{Status: int(min(r.number(), 1000))}
	for fields := r.number(); fields > 0 && !r.failed; fields-- {
		a.Header = append(a.Header, Field{Name: r.text(), Value: r.text()})
	}
	a.Body = bytes.Clone(r.rest)
	if _, err := a.encode(); r.failed || err != nil {
		return Answer{}, errDamaged
	}
	return a, nil
}

// reader takes numbers and texts off the front of bytes.
type reader struct {
	rest   []byte
	failed bool
}

// number reads a number. One that is written longer than necessary fails.
func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.rest)
	if r.failed = r.failed || n <= 0 || n > 1 && r.rest[n-1] == 0; r.failed {
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// bytes reads so many bytes, and returns nil if there are fewer.
func (r *reader) bytes(length uint64) []byte {
	if r.failed = r.failed || length > uint64(len(r.rest)); r.failed {
		return nil
	}
	b := r.rest[:length]
	r.rest = r.rest[length:]
	return b
}

func (r *reader) text() string { return string(r.bytes(r.number())) }
