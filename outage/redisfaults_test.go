package outage_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/servertest"
)

// A fault of Redis begins when it is called, and ends when mend is.
type redisFault func(t *testing.T, s *redistest.Server, line *redistest.FaultyProxy) (mend func())

// order has a server do something.
func order(t *testing.T, s *redistest.Server, words ...any) {
	t.Helper()
	if err := s.Client().Do(context.Background(), words...).Err(); err != nil {
		t.Fatalf("%v: %v", words[0], err)
	}
}

// redisFaults are the ways in which Redis can be away.
var redisFaults = map[string]redisFault{
	"killed": func(_ *testing.T, s *redistest.Server, _ *redistest.FaultyProxy) func() {
		s.Kill()
		return s.Restart
	},
	"stopped": func(_ *testing.T, s *redistest.Server, _ *redistest.FaultyProxy) func() {
		s.Pause()
		return s.Resume
	},
	"refused": func(_ *testing.T, _ *redistest.Server, line *redistest.FaultyProxy) func() {
		line.Refuse()
		return line.Pass
	},
	"cut off": func(_ *testing.T, _ *redistest.Server, line *redistest.FaultyProxy) func() {
		line.Swallow()
		return line.Pass
	},
	"replies lost": func(_ *testing.T, _ *redistest.Server, line *redistest.FaultyProxy) func() {
		line.DropReplies(1_000_000)
		return line.Pass
	},
	"out of memory": func(t *testing.T, s *redistest.Server, _ *redistest.FaultyProxy) func() {
		order(t, s, "CONFIG", "SET", "maxmemory", "1")
		return func() { order(t, s, "CONFIG", "SET", "maxmemory", "0") }
	},
	"too few replicas": func(t *testing.T, s *redistest.Server, _ *redistest.FaultyProxy) func() {
		order(t, s, "CONFIG", "SET", "min-replicas-to-write", "1")
		return func() { order(t, s, "CONFIG", "SET", "min-replicas-to-write", "0") }
	},
	"read-only": func(t *testing.T, s *redistest.Server, _ *redistest.FaultyProxy) func() {
		order(t, s, "REPLICAOF", "127.0.0.1", "1")
		return func() { order(t, s, "REPLICAOF", "NO", "ONE") }
	},
	"another password": func(t *testing.T, s *redistest.Server, _ *redistest.FaultyProxy) func() {
		order(t, s, "ACL", "SETUSER", "default", "-@all", "+auth", "+acl")
		return func() { order(t, s, "ACL", "SETUSER", "default", "+@all") }
	},
	"loading": loading,
}

// loading has Redis killed, and started again with so much on its disk that it reads for as
// long as it is not told to hurry.
func loading(t *testing.T, s *redistest.Server, _ *redistest.FaultyProxy) func() {
	order(t, s, "DEBUG", "POPULATE", 50_000, "ballast")
	order(t, s, "BGREWRITEAOF")
	awaitKept(t, s)
	order(t, s, "CONFIG", "SET", "key-load-delay", 1000, "loading-process-events-interval-bytes", 1024)
	order(t, s, "CONFIG", "REWRITE")
	s.Kill()
	s.Begin()
	isLoading := func() bool {
		err := s.Client().Ping(context.Background()).Err()
		return err != nil && strings.HasPrefix(err.Error(), "LOADING")
	}
	servertest.Eventually(t, "the loading to begin", isLoading)
	return func() {
		if !isLoading() {
			t.Error("it has long loaded")
		}
		order(t, s, "CONFIG", "SET", "key-load-delay", 0)
	}
}

// keep has a server keep on disk what it has.
func keep(t *testing.T, s *redistest.Server) {
	t.Helper()
	order(t, s, "CONFIG", "SET", "appendonly", "yes")
	order(t, s, "CONFIG", "REWRITE")
	awaitKept(t, s)
}

// awaitKept waits until all that a server has is on its disk.
func awaitKept(t *testing.T, s *redistest.Server) {
	t.Helper()
	servertest.Eventually(t, "all to be on disk", func() bool {
		about := s.Client().InfoMap(context.Background(), "persistence").Val()["Persistence"]
		return about["aof_enabled"] == "1" && about["aof_rewrite_in_progress"] == "0" &&
			about["aof_rewrite_scheduled"] == "0" && about["aof_last_bgrewrite_status"] == "ok"
	})
}
