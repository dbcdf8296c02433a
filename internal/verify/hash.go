package verify

import (
	"strings"

	"github.com/mailgate/mailgate/internal/secret"
)

// hash identifies a code, its address and its purpose. Without the secret key it reveals none of them.
type hash [16]byte

// hashPurpose makes this key differ from the other keys derived from the same secret.
const hashPurpose = "mailgate verify: hashes of codes, version 1"

// hashOf returns the hash of a code for this recipient. The case of Latin letters in the address
// makes no difference, since people do not always type it alike; a tag and dots do. Two spellings
// are certain enough to be one mailbox to count sends by, but not to prove that its email was read.
func hashOf(by *secret.MAC, to Recipient, code string) hash {
	return by.Sum(to.Purpose, strings.Map(lower, to.Address), code)
}

// lower leaves other letters alone: lower case would make a Latin k of a Kelvin sign, and two
// people's addresses one.
func lower(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}
