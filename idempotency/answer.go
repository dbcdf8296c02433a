package idempotency

import (
	"bytes"
	"encoding/binary"
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

// encode writes the status, the number of fields, the length and text of each name and
// value, and the body.
func (a Answer) encode() []byte {
	b := binary.AppendUvarint(nil, uint64(a.Status))
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

// parseAnswer reads what encode wrote, and keeps nothing of b.
func parseAnswer(b []byte) (Answer, error) {
	r := reader{rest: b}
	a := Answer{Status: int(r.number())}
	for fields := r.number(); fields > 0 && !r.failed; fields-- {
		a.Header = append(a.Header, Field{Name: r.text(), Value: r.text()})
	}
	if r.failed || a.Status < 100 || a.Status > 599 {
		return Answer{}, errDamaged
	}
	a.Body = bytes.Clone(r.rest)
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
