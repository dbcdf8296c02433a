package redisx

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// ErrType means that a script met a key with another type of value, so it can never run on it.
var ErrType = errors.New("the Redis key holds another type of value; does another program use this prefix?")

// Script is a Lua program that works on one key.
type Script struct {
	source, sha string
	wrote       func(reply any) bool
}

// NewScript makes a Script. Wrote reports by the reply whether replicas must have what the
// script wrote; nil is for a script that does not write. WAIT waits for the last write of a
// connection, so a script that finds its work done by an earlier run must write again, as by
// PEXPIREAT, or its caller must call [Records.Confirm].
func NewScript(source string, wrote func(reply any) bool) *Script {
	sum := sha1.Sum([]byte(source))
	return &Script{source: source, sha: hex.EncodeToString(sum[:]), wrote: wrote}
}

// Run runs the script on the master of the key. It is executed once at most, also by a client that is set to repeat
// commands. It is sent again only after an answer that proves that it was not executed, such as MOVED. After an error it
// may have been executed.
func (s *Script) Run(ctx context.Context, client redis.UniversalClient, key string, args ...any) (answer any, err error) {
	ctx = Call(ctx)
	for _, program := range [...][2]any{{"evalsha", s.sha}, {"eval", s.source}} { // the second if Redis does not know it
		r := run{unrepeated{redis.NewCmd(ctx, slices.Concat([]any{program[0], program[1], 1, key}, args)...)}, s}
		if err = client.Process(ctx, r); err == nil {
			return r.Val(), nil
		}
		if !redis.HasErrorPrefix(err, "NOSCRIPT") {
			break
		}
	}
	if strings.Contains(err.Error(), "WRONGTYPE") {
		return nil, reply{ErrType.Error(), errors.Join(ErrType, err)}
	}
	return nil, err
}

// unrepeated is a command that the library does not repeat after a lost answer. It follows MOVED and
// ASK all the same.
type unrepeated struct{ *redis.Cmd }

// NoRetry tells the library.
func (unrepeated) NoRetry() bool { return true }

// run is one run of a script, which the hook of its master recognizes.
type run struct {
	unrepeated
	script *Script
}
