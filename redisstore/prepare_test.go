package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/servertest"
)

func TestPrepareWarns(t *testing.T) {
	for config, want := range map[string][]string{
		"appendonly yes": nil,
		"save 60 1":      nil,
		"appendonly no":  {"nothing on disk"},
		"save 60 1\nmaxmemory-policy allkeys-lru":      {"allkeys-lru"},
		"appendonly no\nmaxmemory-policy volatile-ttl": {"nothing on disk", "volatile-ttl"},
		"save 60 1\nrename-command CONFIG hidden":      {"does not let its settings be read"},
	} {
		server := redistest.Alone(t, strings.Split(config, "\n")...)
		store := open(t, redisstore.Options{URL: server.URL(), Timeout: patient})
		store.Use(count, redisstore.NewScript("return 1", nil), count)
		warnings, err := store.Prepare(context.Background())
		if err != nil || len(warnings) != len(want) {
			t.Errorf("%q: %q, %v; want %d warnings", config, warnings, err, len(want))
			continue
		}
		for i := range want {
			if !strings.Contains(warnings[i], want[i]) {
				t.Errorf("%q: warning %q, want one of %q", config, warnings[i], want[i])
			}
		}
		if loaded := server.Client().Info(context.Background(), "memory").Val(); !strings.Contains(loaded, "number_of_cached_scripts:2") {
			t.Errorf("%q: the scripts are not loaded", config)
		}
	}
}

// What a server did not say is nobody's setting.
func TestPrepareWithAWrongPassword(t *testing.T) {
	server := redistest.Alone(t, "requirepass right")
	for _, user := range []string{":wrong@", ""} {
		store := open(t, redisstore.Options{URL: "redis://" + user + server.Addr, Timeout: patient})
		store.Use(count)
		if warnings, err := store.Prepare(context.Background()); !errors.Is(err, redisstore.ErrUnavailable) || len(warnings) > 0 && !strings.Contains(warnings[0], "does not let its settings be read") {
			t.Errorf("as %q: %q, %v", user, warnings, err)
		}
	}
}

// A server that is far away, or busy, is prepared all the same: not each script takes a
// journey of its own.
func TestPrepareFromAfar(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	proxy := redistest.Proxy(t, server.Addr)
	proxy.Delay(50 * time.Millisecond)
	store := open(t, redisstore.Options{URL: proxy.URL(), Timeout: time.Second})
	for i := range 50 {
		store.Use(redisstore.NewScript(fmt.Sprint("return ", i), nil))
	}
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	if warnings, err := store.Prepare(ctx); err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "nothing on disk") {
		t.Errorf("%q, %v", warnings, err)
	}
	if loaded := server.Client().Info(ctx, "memory").Val(); !strings.Contains(loaded, "number_of_cached_scripts:50") {
		t.Error("the scripts are not loaded")
	}
}

func TestPrepareMissesReplicas(t *testing.T) {
	store := open(t, redisstore.Options{URL: redistest.Alone(t, "appendonly yes").URL(), Timeout: patient, Confirm: 2})
	warnings, err := store.Prepare(context.Background())
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "0 replicas and 2 must confirm") {
		t.Errorf("%q, %v", warnings, err)
	}
}

// Ready is no while Redis would take no admission, whatever else it answers.
func TestReadyMeansThatItTakesWrites(t *testing.T) {
	ctx := context.Background()
	for name, fault := range map[string][2][]any{
		"out of memory":    {{"CONFIG", "SET", "maxmemory", "1mb"}, {"CONFIG", "SET", "maxmemory", "0"}},
		"too few replicas": {{"CONFIG", "SET", "min-replicas-to-write", "1"}, {"CONFIG", "SET", "min-replicas-to-write", "0"}},
		"a replica now":    {{"REPLICAOF", "127.0.0.1", "1"}, {"REPLICAOF", "NO", "ONE"}},
	} {
		server := redistest.Alone(t)
		store := open(t, redisstore.Options{URL: server.URL(), Timeout: patient})
		if err := store.Ready(ctx); err != nil {
			t.Errorf("%s, before: %v", name, err)
		}
		server.Client().Do(ctx, fault[0]...)
		if err := store.Ready(ctx); !errors.Is(err, redisstore.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
		server.Client().Do(ctx, fault[1]...)
		servertest.Await(t, name+" to be over", patient, func() error { return store.Ready(ctx) })
	}
}

func TestReadyInACluster(t *testing.T) {
	servers := redistest.Cluster(t)
	store := open(t, redisstore.Options{URL: servers.URL(), Timeout: 2 * time.Second})
	ctx := context.Background()
	if err := store.Ready(ctx); err != nil {
		t.Error(err)
	}
	servers.Masters[0].Pause()
	if err := store.Ready(ctx); err != nil {
		t.Errorf("one master of three hangs: %v", err)
	}
	for _, s := range servers.Masters[1:] {
		s.Pause()
	}
	begin := time.Now()
	if err := store.Ready(ctx); !errors.Is(err, redisstore.ErrUnavailable) || time.Since(begin) > 4*time.Second {
		t.Errorf("all masters hang: %v after %v", err, time.Since(begin))
	}
	for _, s := range servers.Masters {
		s.Resume()
	}
}

// Where replicas have to confirm a send, Ready asks them too, once for all who ask at a time.
func TestReadyMeansThatReplicasConfirm(t *testing.T) {
	t.Parallel()
	master := redistest.Alone(t, "repl-diskless-sync-delay 0")
	host, port, _ := net.SplitHostPort(master.Addr)
	proxy := redistest.Proxy(t, master.Addr)
	store := open(t, redisstore.Options{URL: proxy.URL(), Confirm: 1, Timeout: 2 * time.Second})
	ctx := context.Background()
	const many = 50
	outcomes := make(chan error, many)
	for range many {
		go func() { outcomes <- store.Ready(ctx) }()
	}
	for range many {
		if err := <-outcomes; !errors.Is(err, redisstore.ErrUnavailable) {
			t.Errorf("without a replica: %v", err)
		}
	}
	if n := proxy.Commands("wait"); n == 0 || n > many/5 {
		t.Errorf("the server was asked %d times", n)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := store.Ready(ended); !errors.Is(err, redisstore.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("for somebody who has gone: %v", err)
	}
	replica := redistest.Alone(t, "replicaof "+host+" "+port)
	answered(t, store)
	replica.Pause()
	if err := store.Ready(ctx); !errors.Is(err, redisstore.ErrUnavailable) {
		t.Errorf("with the replica stopped: %v", err)
	}
	replica.Resume()
	answered(t, store)
	store.Close()
	if err := store.Ready(ctx); !errors.Is(err, redisstore.ErrUnavailable) {
		t.Errorf("of a store that is closed: %v", err)
	}
}
