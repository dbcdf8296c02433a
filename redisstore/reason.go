package redisstore

import (
	"errors"
	"net"
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

// A refusal is such an answer, or that nobody was there to be asked.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// refused marks the error of one run of a script, if it is a refusal. Confirmation that did
// not come is none, whatever the reason: the master has written.
func refused(err error) error {
	switch {
	case err == nil || errors.Is(err, errUnconfirmed):
		return err
	case neverLeft(err) || refusalIn(err):
		return refusal{err}
	}
	return err
}

func refusalIn(err error) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	word, _, _ := strings.Cut(reply.Error(), " ")
	return slices.Contains(refusals, word)
}

// unsent is the error of a run for which no server was found, or that came no farther than
// to look.
type unsent struct{ error }

func (u unsent) Unwrap() error { return u.error }

// neverLeft reports whether one run of a script certainly was not sent: there was no server
// to send it to, or no connection could be made. A connection is made before a run is sent,
// or when a server has sent it on to another without doing anything.
func neverLeft(err error) bool {
	var none unsent
	if errors.As(err, &none) {
		return true
	}
	var network *net.OpError
	return errors.As(err, &network) && network.Op == "dial"
}

// Undone reports whether the error of a call is certain proof that Redis did nothing.
func Undone(err error) bool {
	var r refusal
	return errors.As(err, &r)
}
