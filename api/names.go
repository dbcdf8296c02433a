package api

import (
	"encoding/base64"
	"encoding/binary"

	"github.com/mailgate/mailgate/internal/idempotency"
	"github.com/mailgate/mailgate/internal/secret"
	"github.com/mailgate/mailgate/throttle"
)

// names are keyed hashes: of requests with an Idempotency-Key, of the takes under one, and of the subjects of actions,
// for logs. What a hash is of is a part of it.
type names struct{ *secret.MAC }

// namesOf is the purpose of their key.
const namesOf = "mailgate api: names, version 1"

func newNames(of []byte) (names, error) {
	key, err := secret.Key(of, namesOf)
	return names{secret.NewMAC(key)}, err
}

// request returns the fingerprint of a request. Bodies that differ in one byte are different requests,
// even where they mean the same.
func (n names) request(route string, body []byte) idempotency.Fingerprint {
	return n.Sum("request", route, string(body))
}

// subject hashes the subject of an action or a rule for logs, as mailboxes are hashed. The hash
// cannot be computed without the secret.
func (n names) subject(of string) string { return n.Name("subject", of) }

// take returns the id of a take under an Idempotency-Key. It is the same on all servers at all times,
// so that a repeated take is recognized for as long as the first one counts.
func (n names) take(of idempotency.Name) throttle.ID {
	hash := n.Sum("take", of.Caller, of.Key)
	return idOf(hash[:])
}

// idAt returns the id of a take that a counter admitted at a time. A counter refunds a take by its
// time, so the id encodes that.
func idAt(ms int64) throttle.ID {
	return idOf(binary.BigEndian.AppendUint64(nil, uint64(ms))[2:])
}

// timeIn returns the time in an id of idAt. In any other id that is a time far from any take.
func timeIn(id throttle.ID) int64 {
	var b [8]byte
	_, _ = base64.RawURLEncoding.Decode(b[2:], id[:])
	return int64(binary.BigEndian.Uint64(b[:]))
}

func idOf(hash []byte) (id throttle.ID) {
	base64.RawURLEncoding.Encode(id[:], hash[:6])
	return id
}
