package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"

	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/secret"
	"github.com/mailgate/mailgate/throttle"
)

// names know a request with an Idempotency-Key again: its body, and the id that it is charged
// under. They also call the subjects of actions something in logs.
type names struct {
	prints   *idempotency.Fingerprinter
	sends    []byte // the key of their reservations
	takes    []byte // the key of their ids
	subjects []byte // the key of their names in logs
	now      func() int64
}

const (
	// reservationsOf keeps the key apart from all others that are made of the same secret.
	reservationsOf = "mailgate api: reservations of idempotent sends, version 1"
	takesOf        = "mailgate api: ids of idempotent takes, version 1"
	// mailboxesInLogs and subjectsInLogs do the same for the names that logs have.
	mailboxesInLogs = "mailgate api: mailboxes in logs, version 1"
	subjectsInLogs  = "mailgate api: subjects in logs, version 1"
	// period is how many milliseconds a key stands for one reservation. It is less than
	// answers are kept, so that a key which is used for another send after that is
	// charged, though the first charge may still count. A retry that happens to be in the
	// next period finds nothing of an attempt that was killed, and is charged by itself.
	period = 12 * 60 * 60 * 1000
)

func newNames(of []byte, now func() int64) (*names, error) {
	prints, err := idempotency.NewFingerprinter(of)
	if err != nil {
		return nil, err
	}
	sends, err := secret.Key(of, reservationsOf)
	if err != nil {
		return nil, err
	}
	takes, err := secret.Key(of, takesOf)
	if err != nil {
		return nil, err
	}
	subjects, err := secret.Key(of, subjectsInLogs)
	return &names{prints, sends, takes, subjects, now}, err
}

// subject stands for the subject of an action in logs, as a mailbox's hash does for it:
// nobody can make it of the subject who has not the secret.
func (n *names) subject(of string) string {
	return hex.EncodeToString(sum(n.subjects, []byte(of))[:5])
}

func (n *names) body(route string, body []byte) idempotency.Fingerprint {
	return n.prints.Of(route, body)
}

// reservation is the same for one name on all servers. It tells nothing about the key.
func (n *names) reservation(of idempotency.Name) throttle.ID {
	name := sum(n.sends, []byte(of.Text()))
	begins := binary.BigEndian.Uint64(name) % period // each at its own time
	number := (uint64(n.now()) + begins) / period
	return idOf(sum(n.sends, binary.BigEndian.AppendUint64(name, number)))
}

// take is the id of a take, the same for one name on all servers. It is so for ever: a take
// that is on record is known again for as long as it counts.
func (n *names) take(of idempotency.Name) throttle.ID {
	return idOf(sum(n.takes, []byte(of.Text())))
}

func idOf(hash []byte) (id throttle.ID) {
	base64.RawURLEncoding.Encode(id[:], hash[:6])
	return id
}

func sum(key, text []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	return mac.Sum(nil)
}
