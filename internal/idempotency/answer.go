package idempotency

import (
	"bytes"
	"encoding/json"
)

// Answer is what a replay returns: the status, the body, and the header fields that belong to them,
// without those of the moment, such as Date.
type Answer struct {
	Status int
	Header []Field `json:",omitempty"` // UTF-8
	Body   []byte  `json:"-"`
}

// Field is one line of a header.
type Field struct{ Name, Value string }

// encode writes the answer as a line of JSON, and the body behind it.
func (a Answer) encode() []byte {
	head, _ := json.Marshal(a) // of numbers and texts, which never fails
	return append(append(head, '\n'), a.Body...)
}

// parseAnswer reads what encode wrote, and keeps nothing of b.
func parseAnswer(b []byte) (a Answer, err error) {
	head, body, found := bytes.Cut(b, []byte("\n"))
	if err := json.Unmarshal(head, &a); err != nil || !found || a.Status < 100 || a.Status > 599 {
		return Answer{}, errDamaged
	}
	a.Body = bytes.Clone(body)
	return a, nil
}
