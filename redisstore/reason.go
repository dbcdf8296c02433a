package redisstore

import (
	"errors"
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
