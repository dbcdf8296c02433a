package standby_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/idempotency"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/prober"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/internal/standby"
	"github.com/mailgate/mailgate/internal/verify"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/throttletest"
	"github.com/redis/go-redis/v9"
)

const (
	hour   = int64(time.Hour / time.Millisecond)
	prefix = "mailgate"
)

var (
	tiers, _   = throttle.ParsePolicy("day=3/24h")
	counter, _ = throttle.NewFixedWindow(throttle.Tier{Name: "day", Limit: 3, Window: 24 * time.Hour})
)

// onRedis is a limiter on Redis.
func onRedis(t testing.TB, client redis.UniversalClient, name string, a throttle.Algorithm) *throttle.Limiter {
	t.Helper()
	return must.Get(cluster.New(client, prefix+":"+name, a))(t)
}

// history is what Redis has of a key.
func history(t *testing.T, client redis.UniversalClient, key string) throttle.History {
	t.Helper()
	return must.Get(onRedis(t, client, "mailbox", tiers).History(context.Background(), key))(t)
}

// onRecord reports whether Redis has a send of a key.
func onRecord(t *testing.T, client redis.UniversalClient, key string, id throttle.ID) bool {
	t.Helper()
	return slices.ContainsFunc(history(t, client, key), func(a throttle.Admission) bool { return a.ID == id })
}

// Words of the scripts, which a command has only where Redis does not know the script yet.
const (
	valueWritten = "Replaces a value"
	tiersTaken   = "A throttle.Policy"
	actionTaken  = "A throttle.FixedWindow"
)

// node is one node with a mailbox limiter, an action counter, codes and requests.
type node struct {
	*standby.Standby
	client   redis.UniversalClient
	prober   *prober.Prober
	store    *cache.Store
	clock    *redisx.Clock
	mailbox  *throttle.Limiter
	action   *throttle.Limiter
	own      *throttle.Limiter // of mailbox
	codes    *verify.Codes
	requests *idempotency.Requests
	log      *logged
}

type logged struct {
	servertest.Log

	holds    string // the words of a line that is not written before it is released
	held     chan struct{}
	released chan struct{}
}

// holdLine holds back a line with these words, until it is released.
func (l *logged) holdLine(words string) (release func()) {
	l.holds, l.held, l.released = words, make(chan struct{}), make(chan struct{})
	return sync.OnceFunc(func() { close(l.released) })
}

// A holding handler holds back what its log says, before it has any lock.
type holding struct {
	slog.Handler
	log *logged
}

func (h holding) Handle(ctx context.Context, r slog.Record) error {
	if h.log.holds != "" && strings.Contains(r.Message, h.log.holds) {
		close(h.log.held)
		<-h.log.released
	}
	return h.Handler.Handle(ctx, r)
}

// open makes a node over a directory. Its worker runs once Start is called.
func open(t testing.TB, dir string, url string) *node {
	t.Helper()
	n := &node{clock: standby.NewClock(), log: &logged{}}
	n.client = must.Get(redisx.Open(redisx.Options{URL: url, Timeout: time.Second}))(t)
	n.prober = prober.New(n.client, prefix, 0)
	n.store = must.Get(cache.Open(cache.Options{Dir: dir, Now: n.clock.Now}))(t)
	n.Standby = must.Get(standby.New(standby.Options{
		Prober: n.prober, Store: n.store, Clock: n.clock, Log: slog.New(holding{slog.NewTextHandler(n.log, nil), n.log}),
	}))(t)
	n.own = local.New(n.store.Table("mailbox"), tiers)
	n.mailbox = n.Limiter("mailbox", onRedis(t, n.client, "mailbox", tiers), n.own)
	n.action = n.Limiter("action", onRedis(t, n.client, "action", counter), local.New(n.store.Table("action"), counter))
	budget := throttletest.Policy(t, "ten-minutes=20/10m")
	guesses := n.Limiter("guesses", onRedis(t, n.client, "guesses", budget), local.New(n.store.Table("guesses"), budget))
	codes := n.Store("codes", keyed.Redis(n.client, prefix+":codes"), keyed.Local(n.store.Table("codes")), verify.Merge, false)
	n.codes = must.Get(verify.New(verify.Options{Store: codes, Secret: bytes.Repeat([]byte("s"), 32), Guesses: guesses}))(t)
	requests := n.Store("requests", keyed.Redis(n.client, prefix+":requests"), keyed.Local(n.store.Table("requests")), idempotency.Merge, true)
	n.requests = idempotency.New(requests, 60_000)
	t.Cleanup(func() { n.end() })
	return n
}

// end ends the node, without waiting for Redis.
func (n *node) end() {
	n.Close(cancelled)
	n.prober.Close()
	_ = n.store.Close()
	_ = n.client.Close()
}

var cancelled = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// start makes a node on a server, with its worker.
func start(t testing.TB, url string) *node {
	t.Helper()
	n := open(t, t.TempDir(), url)
	n.Start()
	return n
}

func (n *node) take(t testing.TB, key string) throttle.Verdict {
	t.Helper()
	return must.Get(n.mailbox.Take(context.Background(), key))(t)
}

// admit takes, which must be admitted, alone or not.
func (n *node) admit(t testing.TB, key string, alone bool) throttle.Admission {
	t.Helper()
	v, err := n.mailbox.Take(context.Background(), key)
	if err != nil || !v.Allowed || v.Degraded != alone {
		t.Fatalf("admitted %v, alone %v, %v", v.Allowed, v.Degraded, err)
	}
	return v.Admission
}

// awaitAlone waits until the node is alone.
func (n *node) awaitAlone(t testing.TB) {
	t.Helper()
	servertest.Eventually(t, "the node to be alone", func() bool {
		_, _ = n.mailbox.Peek(context.Background(), "awaited")
		return n.State().Away > 0
	})
}

func (n *node) awaitHealthy(t testing.TB) {
	t.Helper()
	servertest.Eventually(t, "the node to have told all", func() bool {
		s := n.State()
		return s.Since == 0 && s.Journal == 0
	})
}

// away kills the Redis of nodes, and waits until they are alone.
func away(t testing.TB, server *redistest.Server, nodes ...*node) {
	t.Helper()
	server.Kill()
	for _, n := range nodes {
		n.awaitAlone(t)
	}
}

// back restarts it, and waits until the nodes have told all.
func back(t testing.TB, server *redistest.Server, nodes ...*node) {
	t.Helper()
	server.Restart()
	for _, n := range nodes {
		n.awaitHealthy(t)
	}
}

func unavailable(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, throttle.ErrUnavailable) {
		t.Fatalf("the error is %v", err)
	}
}
