package redisstore

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"slices"

	"github.com/redis/go-redis/v9"
)

// A Script is a Lua program that works on one key, and replies with a string or a number.
type Script struct {
	source  string
	sha     any                     // a string, in an interface once rather than at every call
	written func(reply string) bool // whether replicas must have what the script wrote
}

// NewScript makes a script. With Options.Confirm a reply for which written is true is
// given only once the replicas have what was written; nil is for a script whose writes
// may be forgotten. A script that finds its work done by an earlier run must write to the
// key again, as with PEXPIRE, since Redis waits for the writes of one connection.
func NewScript(source string, written func(reply string) bool) *Script {
	sum := sha1.Sum([]byte(source))
	return &Script{source: source, sha: hex.EncodeToString(sum[:]), written: written}
}

// A command is one run of a script. The client library never sends it twice: only who
// wrote the script knows that a second run is safe.
type command struct{ *redis.StringCmd }

// NoRetry tells the client library so.
func (command) NoRetry() bool { return true }

// A sender sends a command to a server and returns the reply.
type sender func(ctx context.Context, cmd command) (string, error)

// run runs the script, which the server should have loaded.
func (s *Script) run(ctx context.Context, send sender, key string, words []any) (string, error) {
	reply, err := send(ctx, s.command(ctx, "evalsha", s.sha, key, words))
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		return s.runWhole(ctx, send, key, words)
	}
	return reply, err
}

// runWhole is run with the program sent along, which also loads it.
func (s *Script) runWhole(ctx context.Context, send sender, key string, words []any) (string, error) {
	return send(ctx, s.command(ctx, "eval", s.source, key, words))
}

// look is run for a script that is refused at its first write. A server that knows no such
// runs refuses it.
func (s *Script) look(ctx context.Context, send sender, key string, words []any) (string, error) {
	reply, err := send(ctx, s.command(ctx, "evalsha_ro", s.sha, key, words))
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		return send(ctx, s.command(ctx, "eval_ro", s.source, key, words))
	}
	return reply, err
}

func (s *Script) command(ctx context.Context, name string, program any, key string, args []any) command {
	words := make([]any, 0, 4+len(args))
	words = append(words, name, program, 1, key)
	return command{redis.NewStringCmd(ctx, append(words, args...)...)}
}

// Use adds scripts to those that Prepare loads.
func (s *Store) Use(scripts ...*Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, script := range scripts {
		if !slices.Contains(s.scripts, script) {
			s.scripts = append(s.scripts, script)
		}
	}
}

func (s *Store) used() []*Script {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.scripts)
}
