package cluster

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed scripts/take.lua
	takeSource string
	//go:embed scripts/look.lua
	lookSource string
	//go:embed scripts/release.lua
	releaseSource string
	//go:embed scripts/reset.lua
	resetSource string

	takeScript    = newScript(takeSource, readHistory)
	lookScript    = newScript(lookSource, readHistory)
	releaseScript = newScript(releaseSource, nil)
	resetScript   = newScript(resetSource, readHistory)
	tierScripts   = []*script{takeScript, lookScript, releaseScript, resetScript}
)

// A script is a Lua program and the name by which a server that has loaded it knows it.
type script struct {
	source string
	sha    any                        // a string, in an interface once rather than at every call
	read   func(string) (seen, error) // reads a reply that says what was seen
}

func newScript(source string, read func(string) (seen, error)) *script {
	sum := sha1.Sum([]byte(source))
	return &script{source: source, sha: hex.EncodeToString(sum[:]), read: read}
}

// A call is one run of a script. The client library never sends it twice: only the
// limiter knows that a second run is safe.
type call struct{ *redis.StringCmd }

// NoRetry tells the client library so.
func (call) NoRetry() bool { return true }

// byName calls a script that the server should have loaded.
func (s *script) byName(ctx context.Context, key string, args []any) call {
	return s.command(ctx, "evalsha", s.sha, key, args)
}

// whole sends the program along, which also loads it.
func (s *script) whole(ctx context.Context, key string, args []any) call {
	return s.command(ctx, "eval", s.source, key, args)
}

func (s *script) command(ctx context.Context, name string, program any, key string, args []any) call {
	words := make([]any, 0, 4+len(args))
	words = append(words, name, program, 1, key)
	return call{redis.NewStringCmd(ctx, append(words, args...)...)}
}
