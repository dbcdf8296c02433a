package api

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/internal/secret"
	"github.com/mailgate/mailgate/throttle"
)

// names are keyed hashes: of requests with an Idempotency-Key, of the takes under one, and of
// the subjects of actions, for logs.
type names struct {
	prints   *idempotency.Fingerprinter
	takes    []byte // the key of their ids
	subjects *secret.Names
}

// The purposes of the keys that are derived from the secret here.
const (
	takesOf         = "mailgate api: ids of idempotent takes, version 1"
	mailboxesInLogs = "mailgate api: mailboxes in logs, version 1"
	subjectsInLogs  = "mailgate api: subjects in logs, version 1"
)

func newNames(of []byte) (names, error) {
	prints, noPrints := idempotency.NewFingerprinter(of)
	takes, noTakes := secret.Key(of, takesOf)
	subjects, noSubjects := secret.Key(of, subjectsInLogs)
	return names{prints, takes, secret.NewNames(subjects)}, cmp.Or(noPrints, noTakes, noSubjects)
}

// subject hashes the subject of an action or a rule for logs, as mailboxes are hashed. The hash
// cannot be computed without the secret.
func (n *names) subject(of string) string { return n.subjects.Of(of) }

// take returns the id of a take under an Idempotency-Key. It is the same on all servers at all times,
// so that a repeated take is recognized for as long as the first one counts.
func (n *names) take(of idempotency.Name) throttle.ID {
	return idOf(sum(n.takes, of.Caller+"\x00"+of.Key))
}

// idAt returns the id of a take that a counter admitted at a moment. A counter refunds a take by its
// moment, so the id encodes that.
func idAt(ms int64) throttle.ID {
	return idOf(binary.BigEndian.AppendUint64(nil, uint64(ms))[2:])
}

// momentOf undoes idAt. Of any other id it makes a moment far from that of a take.
func momentOf(id throttle.ID) int64 {
	var b [8]byte
	_, _ = base64.RawURLEncoding.Decode(b[2:], id[:])
	return int64(binary.BigEndian.Uint64(b[:]))
}

func idOf(hash []byte) (id throttle.ID) {
	base64.RawURLEncoding.Encode(id[:], hash[:6])
	return id
}

func sum(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
