package redisstore

import (
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// isReply reports whether the error is an answer of Redis, and not the lack of one.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// withoutWords cuts from an answer of Redis what it repeats of the command, which
// names the key.
func withoutWords(err error) error {
	if !isReply(err) {
		return err
	}
	if reason, _, cut := strings.Cut(err.Error(), ", with args"); cut {
		return errors.New(reason)
	}
	return err
}

// refusals are the first words of the answers by which Redis says that it does not even
// begin. A script that it did begin can fail when it has written already.
var refusals = []string{
	"OOM", "READONLY", "NOAUTH", "WRONGPASS", "NOPERM", "LOADING", "BUSY", "MISCONF",
	"NOREPLICAS", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN",
}

// A refusal is such an answer.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// refused marks the error of one run of a script, if it is a refusal. Confirmation that did
// not come is none, whatever the reason: the master has written.
func refused(err error) error {
	var reply redis.Error
	if !errors.As(err, &reply) || errors.Is(err, errUnconfirmed) {
		return err
	}
	word, _, _ := strings.Cut(reply.Error(), " ")
	if !slices.Contains(refusals, word) {
		return err
	}
	return refusal{err}
}

// Undone reports whether the error of a call is certain proof that Redis did nothing.
func Undone(err error) bool {
	var r refusal
	return errors.As(err, &r) || errors.Is(err, ErrResting)
}
