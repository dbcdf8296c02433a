package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
)

// halfway writes, and then fails.
var halfway = redisstore.NewScript(`redis.call('INCR', KEYS[1]) return redis.call('LPUSH', KEYS[1], 1)`, nil)

// swelling writes a megabyte, and is refused once memory is short.
var swelling = redisstore.NewScript(`redis.call('SETRANGE', KEYS[1], 1048576, 'x') return 'done'`, nil)

// What a server refuses to do was not done, for certain. Whatever leaves room for doubt is
// not certain.
func TestUndone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Alone(t)
	do := func(words ...any) {
		t.Helper()
		if err := server.Client().Do(ctx, words...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	memory := func(more int64) {
		t.Helper()
		info, err := server.Client().Info(ctx, "memory").Result()
		if err != nil {
			t.Fatal(err)
		}
		var used int64
		if _, err := fmt.Sscanf(info[strings.Index(info, "used_memory:"):], "used_memory:%d", &used); err != nil {
			t.Fatal(err)
		}
		do("CONFIG", "SET", "maxmemory", used+more)
	}
	free := func() { do("CONFIG", "SET", "maxmemory", 0) }
	for _, tt := range []struct {
		name   string
		script *redisstore.Script
		begin  func(*redistest.FaultyProxy)
		end    func()
		want   string // of the error
		undone bool
	}{
		{"out of memory", count, func(*redistest.FaultyProxy) { do("CONFIG", "SET", "maxmemory", 1) }, free, "OOM", true},
		{"read-only", count, func(*redistest.FaultyProxy) { do("REPLICAOF", "127.0.0.1", "1") }, func() { do("REPLICAOF", "NO", "ONE") }, "READONLY", true},
		{"not permitted", count, func(*redistest.FaultyProxy) { do("ACL", "SETUSER", "default", "-eval", "-evalsha") }, func() { do("ACL", "SETUSER", "default", "+@all") }, "NOPERM", true},
		{"half done", halfway, nil, nil, "WRONGTYPE", false},
		{"reply lost", count, func(p *redistest.FaultyProxy) { p.DropReplies(1, "evalsha", "eval") }, nil, "", false},
		{"reply cut off, and then out of memory", swelling, func(p *redistest.FaultyProxy) {
			memory(1 << 19)
			p.CutReplies(1, "eval")
		}, free, "OOM", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			proxy := redistest.Proxy(t, server.Addr)
			store := open(t, redisstore.Options{URL: proxy.URL(), Timeout: 5 * time.Second})
			if tt.begin != nil {
				tt.begin(proxy)
			}
			_, err := begin(t, store, tt.name).Ask(tt.script)
			if tt.end != nil {
				tt.end()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("%v, want %s", err, tt.want)
			}
			if wrapped := fmt.Errorf("taking: %w", err); redisstore.Undone(wrapped) != tt.undone {
				t.Errorf("%v: undone %v", wrapped, !tt.undone)
			}
			if strings.Contains(err.Error(), tt.name) {
				t.Errorf("it names the key: %v", err)
			}
		})
	}
	if redisstore.Undone(nil) || redisstore.Undone(errors.New("OOM")) {
		t.Error("of errors that are none of Redis's")
	}
}

// An answer that it is too late can be to a repetition, of a run that was not heard. So what
// is refused when a decision is asked for again is no proof for the whole.
func TestRefusedAfterTooLate(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	store := open(t, redisstore.Options{URL: server.URL(), Timeout: 5 * time.Second})
	err := begin(t, store, "key").Decide(count, func(string) (now int64, late bool, err error) {
		return 0, true, server.Client().ConfigSet(context.Background(), "maxmemory", "1").Err()
	})
	if !errors.Is(err, redisstore.ErrTooLate) || redisstore.Undone(err) {
		t.Errorf("%v, undone %v", err, redisstore.Undone(err))
	}
}
