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

// subject is the name of an action's subject in logs, as the hash of a mailbox is that of the
// mailbox: it cannot be computed without the secret.
func (n *names) subject(of string) string { return n.subjects.Of(of) }

// take is the id of a take, the same for one name on all servers at all times: a take on record is
// recognized for as long as it counts.
func (n *names) take(of idempotency.Name) throttle.ID {
	return idOf(sum(n.takes, of.Caller+"\x00"+of.Key))
}

// idAt is the id of a take that a counter admitted at a moment. A counter knows no ids and gives a
// take back by its moment, so the id holds that.
func idAt(ms int64) throttle.ID {
	return idOf(binary.BigEndian.AppendUint64(nil, uint64(ms))[2:])
}

// momentOf is what idAt made the id of; any other id is far from the moment of a take.
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
