package api

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"

	"github.com/mailgate/mailgate/internal/idempotency"
	"github.com/mailgate/mailgate/internal/secret"
	"github.com/mailgate/mailgate/throttle"
)

// names are keyed hashes: of requests with an Idempotency-Key, of the takes under one, and of
// the subjects of actions, for logs.
type names struct {
	requests *secret.MAC // of their fingerprints
	takes    *secret.MAC // of their ids
	subjects *secret.MAC
}

// The purposes of the keys that are derived from the secret here.
const (
	requestsOf     = "mailgate api: fingerprints of requests, version 1"
	takesOf        = "mailgate api: ids of idempotent takes, version 1"
	subjectsInLogs = "mailgate api: subjects in logs, version 1"
)

func newNames(of []byte) (names, error) {
	requests, noRequests := secret.Key(of, requestsOf)
	takes, noTakes := secret.Key(of, takesOf)
	subjects, noSubjects := secret.Key(of, subjectsInLogs)
	return names{secret.NewMAC(requests), secret.NewMAC(takes), secret.NewMAC(subjects)}, cmp.Or(noRequests, noTakes, noSubjects)
}

// request returns the fingerprint of a request. Bodies that differ in one byte are different requests,
// even where they mean the same.
func (n *names) request(route string, body []byte) idempotency.Fingerprint {
	return n.requests.Sum(route, string(body))
}

// subject hashes the subject of an action or a rule for logs, as mailboxes are hashed. The hash
// cannot be computed without the secret.
func (n *names) subject(of string) string { return n.subjects.Name(of) }

// take returns the id of a take under an Idempotency-Key. It is the same on all servers at all times,
// so that a repeated take is recognized for as long as the first one counts.
func (n *names) take(of idempotency.Name) throttle.ID {
	hash := n.takes.Sum(of.Caller, of.Key)
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
