package throttle

import (
	"encoding/binary"
	"math/rand/v2"
)

// An ID names one reservation: eight characters of A-Z, a-z, 0-9, - and _. The same
// eight characters stand in the answer to the caller, in the log and in the store,
// so one send can be followed from the click to its record.
//
// An ID only has to be unlike the others of its mailbox, a handful at a time; 48
// random bits are plenty.
type ID [8]byte

const idAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// NewID makes a random ID.
func NewID() (id ID) {
	bits, word := rand.Uint64(), uint64(0)
	for range id {
		word = word<<8 | uint64(idAlphabet[bits&63])
		bits >>= 6
	}
	binary.LittleEndian.PutUint64(id[:], word) // at once, as it is read
	return id
}

// ParseID reads what String wrote. Anything else is ErrID.
func ParseID(text string) (ID, error) {
	var id ID
	if len(text) != len(id) {
		return ID{}, ErrID
	}
	copy(id[:], text)
	if !id.Valid() {
		return ID{}, ErrID
	}
	return id, nil
}

// Valid reports whether the ID is eight characters of the alphabet, as all are that
// NewID and ParseID make. The zero ID is not.
func (id ID) Valid() bool {
	return ofID[id[0]] && ofID[id[1]] && ofID[id[2]] && ofID[id[3]] &&
		ofID[id[4]] && ofID[id[5]] && ofID[id[6]] && ofID[id[7]]
}

// ofID says of each character whether it is of the alphabet.
var ofID = func() (of [256]bool) {
	for i := range len(idAlphabet) {
		of[idAlphabet[i]] = true
	}
	return of
}()

// String is the ID as ParseID reads it.
func (id ID) String() string { return string(id[:]) }
