package verify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"strings"
)

// hash stands for a code, and for the address and the purpose that it was mailed for.
// Without the key that it was made with, it tells nothing about any of them.
type hash [16]byte

// hashPurpose keeps the key apart from all others that are made of the same secret.
const hashPurpose = "mailgate verify: hashes of codes, version 1"

// hashOf returns the hash of a code for this recipient. The case of Latin letters makes no
// difference to the address, since people do not type it alike twice; a tag and dots do. That
// two spellings reach one mailbox is a good enough guess to count sends by, but not to take
// one for the other where a code proves that its mail was read.
func hashOf(key []byte, to Recipient, code string) (h hash) {
	mac := hmac.New(sha256.New, key)
	writePart(mac, to.Purpose)
	writePart(mac, strings.Map(lower, to.Address))
	writePart(mac, code)
	copy(h[:], mac.Sum(nil))
	return h
}

// writePart says where the part ends, so no two lists of parts are written the same.
func writePart(mac io.Writer, part string) {
	_, _ = mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
	_, _ = io.WriteString(mac, part)
}

// lower leaves other letters alone: some that look foreign would become Latin ones, and two
// people's addresses one.
func lower(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}
