package throttle

import "math/rand/v2"

// ID names one send: eight characters of A-Z, a-z, 0-9, - and _. The answer to the
// caller, the log and the store show the same eight characters. An ID only has to differ from
// the others of its key, so 48 random bits are enough.
type ID [8]byte

const idAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// NewID makes a random ID.
func NewID() (id ID) {
	bits := rand.Uint64()
	for i := range id {
		id[i] = idAlphabet[bits>>(6*i)&63]
	}
	return id
}

// ParseID reads what String wrote. The error is [ErrID].
func ParseID(text string) (id ID, err error) {
	if len(text) != len(id) || !ID([]byte(text)).Valid() {
		return ID{}, ErrID
	}
	return ID([]byte(text)), nil
}

// Valid reports whether the ID is one that NewID or ParseID can return.
func (id ID) Valid() bool {
	for _, c := range id {
		if !inID[c] {
			return false
		}
	}
	return true
}

// inID holds whether a character is in an ID: to search idAlphabet for each takes a twelfth of a refusal.
var inID = func() (in [256]bool) {
	for _, c := range []byte(idAlphabet) {
		in[c] = true
	}
	return in
}()

// String returns the ID as ParseID reads it.
func (id ID) String() string { return string(id[:]) }
