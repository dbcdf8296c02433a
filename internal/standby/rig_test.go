package standby_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/standby"
	"github.com/mailgate/mailgate/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/verify"
	"github.com/redis/go-redis/v9"
)

const (
	hour   = int64(time.Hour / time.Millisecond)
	prefix = "mailgate"
)

var tiers = policy("day=3/24h")

func policy(text string) throttle.Policy {
	p, err := throttle.ParsePolicy(text)
	if err != nil {
		panic(err)
	}
	return p
}

// onRedis is a limiter on Redis that takes the pure steps of an algorithm on a keyed value.
type onRedis struct {
	store keyed.Store
	a     throttle.Algorithm
}

func (l onRedis) Take(ctx context.Context, key string, id throttle.ID) (v throttle.Verdict, err error) {
	_, err = l.store.Update(ctx, key, func(old []byte, now int64) (next []byte, expires int64) {
		next, expires, v = l.a.Take(old, throttle.Admission{ID: id, At: now})
		return next, expires
	})
	return v, err
}

func (l onRedis) Peek(ctx context.Context, key string) (v throttle.Verdict, err error) {
	_, err = l.store.Update(ctx, key, func(old []byte, now int64) ([]byte, int64) {
		v = l.a.Peek(old, now)
		return old, now + hour
	})
	return v, err
}

func (l onRedis) Release(ctx context.Context, key string, a throttle.Admission) (released bool, err error) {
	_, err = l.store.Update(ctx, key, func(old []byte, now int64) (next []byte, expires int64) {
		next, expires, released = l.a.Release(old, a)
		return next, expires
	})
	return released, err
}

func (l onRedis) Reset(ctx context.Context, key string) (cleared int, err error) {
	_, err = l.store.Update(ctx, key, func(old []byte, now int64) ([]byte, int64) {
		cleared = l.a.Used(old, now)
		return nil, 0
	})
	return cleared, err
}

func (l onRedis) Record(ctx context.Context, key string, all ...throttle.Admission) error {
	_, err := l.store.Update(ctx, key, func(next []byte, now int64) (_ []byte, expires int64) {
		for _, a := range all {
			next, expires = l.a.Record(next, a, now)
		}
		return next, expires
	})
	return err
}

// history is what Redis has of a key.
func history(t *testing.T, client redis.UniversalClient, key string) (h throttle.History) {
	t.Helper()
	_, err := keyed.Redis(client, prefix+":mailbox").Update(context.Background(), key, func(old []byte, now int64) ([]byte, int64) {
		h = tiers.History(old, now)
		return old, now + hour
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// faults loses the replies of Redis to this node.
type faults struct {
	word   atomic.Pointer[string]
	onLoss func() // if set, before the connection ends
}

// loseReply ends the connection in place of the reply to the next command with the word.
func (f *faults) loseReply(word string) { f.word.Store(&word) }

func (f *faults) lost() bool { return f.word.Load() == nil }

// writeText is in the command by which a keyed store writes to a Redis that does not know the script
// yet, and writeHash in that to one that does.
const writeText = "Replaces a value"

func writeHash(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile("../keyed/swap.lua")
	if err != nil {
		t.Fatal(err)
	}
	return redis.NewScript(string(source)).Hash()
}

type losing struct {
	net.Conn
	*faults
	pending bool
}

func (l *losing) Write(b []byte) (int, error) {
	if word := l.word.Load(); word != nil && bytes.Contains(b, []byte(*word)) {
		l.pending = l.word.CompareAndSwap(word, nil)
	}
	return l.Conn.Write(b)
}

func (l *losing) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if err == nil && l.pending {
		if l.onLoss != nil {
			l.onLoss()
		}
		_ = l.Conn.Close()
		return 0, io.EOF
	}
	return n, err
}

// node is one node with a mailbox limiter, an action counter, codes and requests.
type node struct {
	*standby.Standby
	faults
	client   redis.UniversalClient
	store    *cache.Store
	clock    *standby.Clock
	mailbox  *standby.Limiter
	action   *standby.Limiter
	own      throttle.Limiter // of mailbox
	codes    *verify.Codes
	requests *idempotency.Requests
	log      *logged
}

type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) count(words string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), words)
}

var counter = func() throttle.Algorithm {
	w, err := throttle.NewFixedWindow(throttle.Tier{Name: "day", Limit: 3, Window: 24 * time.Hour})
	if err != nil {
		panic(err)
	}
	return w
}()

// options are those of a client that answers soon, whatever Redis does.
func (n *node) options(addr string) *redis.Options {
	return &redis.Options{
		Addr: addr, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
		DialTimeout: 250 * time.Millisecond, ReadTimeout: 250 * time.Millisecond, WriteTimeout: 250 * time.Millisecond,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &losing{Conn: conn, faults: &n.faults}, nil
		},
	}
}

// open makes a node over a directory. Its worker runs once Start is called.
func open(t testing.TB, dir string, client func(n *node) redis.UniversalClient) *node {
	t.Helper()
	n := &node{clock: standby.NewClock(), log: &logged{}}
	n.client = client(n)
	var err error
	if n.store, err = cache.Open(cache.Options{Dir: dir, Now: n.clock.Now}); err != nil {
		t.Fatal(err)
	}
	n.Standby, err = standby.New(standby.Options{
		Client: n.client, Prefix: prefix, Store: n.store, Clock: n.clock, Log: slog.New(slog.NewTextHandler(n.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	n.own = local.New(n.store.Table("mailbox"), tiers, n.clock.Now)
	n.mailbox = n.Limiter("mailbox", tiers, onRedis{keyed.Redis(n.client, prefix+":mailbox"), tiers}, n.own)
	n.action = n.Limiter("action", counter, onRedis{keyed.Redis(n.client, prefix+":action"), counter}, local.New(n.store.Table("action"), counter, n.clock.Now))
	guesses := n.Limiter("guesses", verify.DefaultGuesses(), onRedis{keyed.Redis(n.client, prefix+":guesses"), verify.DefaultGuesses()},
		local.New(n.store.Table("guesses"), verify.DefaultGuesses(), n.clock.Now))
	codes := n.Store("codes", keyed.Redis(n.client, prefix+":codes"), keyed.Local(n.store.Table("codes"), n.clock.Now), verify.Merge, false)
	if n.codes, err = verify.New(verify.Options{Store: codes, Secret: bytes.Repeat([]byte("s"), 32), Guesses: guesses}); err != nil {
		t.Fatal(err)
	}
	requests := n.Store("requests", keyed.Redis(n.client, prefix+":requests"), keyed.Local(n.store.Table("requests"), n.clock.Now), idempotency.Merge, true)
	if n.requests, err = idempotency.New(idempotency.Options{Store: requests}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.end() })
	return n
}

// end ends the node, without waiting for Redis.
func (n *node) end() {
	n.Close(cancelled)
	_ = n.store.Close()
	_ = n.client.Close()
}

var cancelled = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// start makes a node on a server, with its worker.
func start(t testing.TB, server *redistest.Server) *node {
	t.Helper()
	n := openOn(t, t.TempDir(), server.Addr)
	n.Start()
	return n
}

func openOn(t testing.TB, dir, addr string) *node {
	t.Helper()
	return open(t, dir, func(n *node) redis.UniversalClient { return redis.NewClient(n.options(addr)) })
}

func (n *node) take(t testing.TB, key string) throttle.Verdict {
	t.Helper()
	v, err := n.mailbox.Take(context.Background(), key, throttle.NewID())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// admit takes, which must be admitted, alone or not.
func (n *node) admit(t testing.TB, key string, alone bool) throttle.Admission {
	t.Helper()
	id := throttle.NewID()
	v, err := n.mailbox.Take(context.Background(), key, id)
	if err != nil || !v.Allowed || v.Degraded != alone {
		t.Fatalf("admitted %v, alone %v, %v", v.Allowed, v.Degraded, err)
	}
	return throttle.Admission{ID: id, At: v.At}
}

// awaitAlone waits until the node goes on alone.
func (n *node) awaitAlone(t testing.TB) {
	t.Helper()
	servertest.Eventually(t, "the node to go on alone", func() bool {
		_, _ = n.mailbox.Peek(context.Background(), "awaited")
		return n.State().Alone
	})
}

func (n *node) awaitHealthy(t testing.TB) {
	t.Helper()
	servertest.Eventually(t, "the node to have told all", func() bool {
		s := n.State()
		return !s.Degraded && s.Journal == 0
	})
}

func unavailable(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, throttle.ErrUnavailable) {
		t.Fatalf("the error is %v", err)
	}
}
