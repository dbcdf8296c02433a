package mailer

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
)

// A logKey makes the names that mailboxes have in logs.
type logKey [sha256.Size]byte

// unnamed is what logs call the mailboxes of an Identity without a log key. A hash
// without a key would be no better than the address: lists of addresses are for sale,
// and a hash of each is made in a moment.
const unnamed = "unnamed"

// WithLogKey is the Identity whose addresses have a Hash, made with this key.
func (id Identity) WithLogKey(key [32]byte) Identity {
	made := logKey(key)
	id.logs = &made
	return id
}

// Hash stands for the mailbox in logs: ten hexadecimal digits that are the same for all
// spellings, and that nobody can make of the address, or undo, who has not the log key.
// Without a log key it is "unnamed".
func (a Address) Hash() string {
	if a.logs == nil {
		return unnamed
	}
	mac := hmac.New(sha256.New, a.logs[:])
	mac.Write([]byte(a.key))
	return hex.EncodeToString(mac.Sum(nil)[:5])
}

// LogValue makes slog show the hash.
func (a Address) LogValue() slog.Value { return slog.StringValue(a.Hash()) }

// Format makes fmt show the hash, whatever the verb, so that an address inside
// a struct, a slice or an error's text does not reach a log either.
func (a Address) Format(state fmt.State, _ rune) {
	// A write to fmt's own buffer cannot fail.
	_, _ = state.Write([]byte(a.Hash()))
}
