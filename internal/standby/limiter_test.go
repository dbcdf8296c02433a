package standby_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// While Redis answers, the wrapped limiter is the shared one. Here that is a local limiter, by the
// clock of the suite, next to a Redis that is there.
func TestLimiter_Connected_Suite(t *testing.T) {
	n, open := start(t, redistest.Alone(t).URL()), throttletest.Local(t, "")
	throttletest.Run(t, func(t testing.TB, name string, a throttle.Algorithm, now func() int64) *throttle.Limiter {
		return n.Limiter(name, open(t, name, a, now), open(t, "own-"+name, a, now))
	}, 2000)
}

func TestTake_RedisKilled_ContinuesAloneAndTellsAll(t *testing.T) {
	t.Parallel()
	server := redistest.Durable(t)
	n := start(t, server.URL())
	first := n.admit(t, "alice", false)
	away(t, server, n)
	second, third := n.admit(t, "alice", true), n.admit(t, "alice", true)
	if v := n.take(t, "alice"); v.Allowed || !v.Degraded || v.Limit != "day" {
		t.Errorf("the fourth is admitted %v, alone %v, by %q", v.Allowed, v.Degraded, v.Limit)
	}
	if s := n.State(); s.Since == 0 || s.Away == 0 || s.Journal != 2 || s.Admitted != 2 {
		t.Errorf("in the outage: %+v", s)
	}
	if err := n.Ready(t.Context()); err != nil {
		t.Errorf("in the outage: %v", err)
	}
	if v, err := n.mailbox.Peek(t.Context(), "alice"); err != nil || !v.Degraded || v.Sent != 3 {
		t.Errorf("in the outage: alone %v, sent %d, %v", v.Degraded, v.Sent, err)
	}
	unavailable(t, n.mailbox.Record(t.Context(), "alice", first))
	back(t, server, n)
	got := history(t, server.Client(), "alice")
	for _, a := range []throttle.Admission{first, second, third} {
		if len(got) != 3 || !slices.Contains(got, a) {
			t.Errorf("Redis has %v, want three and %v", got, a)
		}
	}
	if s := n.State(); s.Since != 0 {
		t.Errorf("after the outage: %+v", s)
	}
	if v := n.take(t, "alice"); v.Allowed || v.Degraded {
		t.Errorf("after the outage: admitted %v, alone %v", v.Allowed, v.Degraded)
	}
	if n.log.Count("Redis is away") != 1 || n.log.Count("Redis is back") != 1 || n.log.Count("alice") != 0 {
		t.Errorf("the log is\n%s", n.log.String())
	}
}

// What an override admitted counts by its own windows after the outage, also if they are longer than the rule's.
func TestTake_OverrideInOutage_AppliedByItsOwnAlgorithm(t *testing.T) {
	t.Parallel()
	server := redistest.Durable(t)
	blink := throttletest.Policy(t, "blink=1/1ms")
	n := open(t, t.TempDir(), server.URL())
	rule := n.Limiter("rule", onRedis(t, n.client, "rule", blink), local.New(n.store.Table("rule"), blink))
	override := rule.With(throttletest.Policy(t, "long=3/10m"))
	first := must.Get(override.Take(t.Context(), "alice"))(t)
	away(t, server, n)
	for range 2 {
		if v := must.Get(override.Take(t.Context(), "alice"))(t); !v.Allowed || !v.Degraded {
			t.Fatalf("in the outage: %+v", v)
		}
	}
	if released, err := override.Release(t.Context(), "alice", first.Admission); err != nil || !released {
		t.Fatalf("released %v, %v", released, err)
	}
	n.Start()
	back(t, server, n)
	for _, want := range []bool{true, false} {
		if v := must.Get(override.Take(t.Context(), "alice"))(t); v.Allowed != want || v.Degraded || v.Sent != 3 {
			t.Errorf("after the outage: %+v, want it admitted: %v", v, want)
		}
	}
}

// What was refunded before it was charged again in an outage is so on Redis, too: a bucket that is full does not count
// the charge before the refund has made room.
func TestTake_RefundedAndChargedInOutage_AppliedInThisOrder(t *testing.T) {
	t.Parallel()
	server := redistest.Durable(t)
	bucket := must.Get(throttle.NewTokenBucket(throttle.Tier{Name: "day", Limit: 1, Window: 24 * time.Hour}, 1))(t)
	n := start(t, server.URL())
	l := n.Limiter("bucket", onRedis(t, n.client, "bucket", bucket), local.New(n.store.Table("bucket"), bucket))
	first := must.Get(l.Take(t.Context(), "alice"))(t)
	away(t, server, n)
	if released, err := l.Release(t.Context(), "alice", first.Admission); err != nil || !released {
		t.Fatalf("released %v, %v", released, err)
	}
	if v := must.Get(l.Take(t.Context(), "alice"))(t); !v.Allowed || !v.Degraded {
		t.Fatalf("in the outage: %+v", v)
	}
	back(t, server, n)
	if v := must.Get(l.Take(t.Context(), "alice"))(t); v.Allowed || v.Degraded {
		t.Errorf("after the outage: %+v", v)
	}
}

// A journal has each step of an id, in order: what was refunded and charged again counts from the new time.
func TestTake_RefundedAndChargedAgainUnderItsId_CountsFromTheNewTime(t *testing.T) {
	t.Parallel()
	server := redistest.Durable(t)
	n := start(t, server.URL())
	before := n.admit(t, "alice", false)
	away(t, server, n)
	for _, a := range []throttle.Admission{before, n.admit(t, "alice", true)} {
		if released, err := n.mailbox.Release(t.Context(), "alice", a); err != nil || !released {
			t.Fatalf("released %v, %v", released, err)
		}
	}
	again := must.Get(n.mailbox.TakeID(t.Context(), "alice", before.ID))(t)
	if again.At == before.At {
		t.Fatal("charged again at the same time")
	}
	back(t, server, n)
	if got := history(t, server.Client(), "alice"); !slices.Equal(got, throttle.History{again.Admission}) {
		t.Errorf("Redis has %v, want %v", got, again.Admission)
	}
}

// A counter counts each charge and each refund, also those under one id.
func TestTake_CounterUnderOneIdInOutage_EachIsApplied(t *testing.T) {
	t.Parallel()
	server := redistest.Durable(t)
	n := start(t, server.URL())
	a := n.takeAction(t)
	for range 2 {
		must.Get(n.action.TakeID(t.Context(), "refunded", a.ID))(t)
	}
	away(t, server, n)
	must.Get(n.action.TakeID(t.Context(), "caller", a.ID))(t)
	must.Get(n.action.TakeID(t.Context(), "caller", a.ID))(t)
	for range 2 {
		must.Get(n.action.Release(t.Context(), "refunded", a))(t)
	}
	back(t, server, n)
	n.actionsLeft(t, 0)
	if v := must.Get(n.action.Peek(t.Context(), "refunded"))(t); v.Sent != 0 {
		t.Errorf("%d count after both were refunded", v.Sent)
	}
}

// onRedisAre expects so many sends of alice on Redis.
func onRedisAre(t *testing.T, server *redistest.Server, want int) {
	t.Helper()
	if got := history(t, server.Client(), "alice"); len(got) != want {
		t.Errorf("Redis has %d sends, want %d", len(got), want)
	}
}

// A Redis that ends the connection is away at once: the call itself is decided alone, and Redis
// learns of it under the same id.
func TestTake_RedisDiesBeforeItAnswers_DecidedAlone(t *testing.T) {
	server := redistest.Alone(t)
	proxy := redistest.Proxy(t, server.Addr)
	n := start(t, proxy.URL())
	n.admit(t, "alice", false)
	id, v := throttle.NewID(), throttle.Verdict{}
	err := asPaused(t, server, proxy, func() (err error) {
		v, err = n.mailbox.TakeID(t.Context(), "alice", id)
		return err
	})
	if errors.Is(err, redisx.ErrSilent) {
		t.Skip("the machine was too slow to kill Redis within the call")
	}
	if err != nil || !v.Allowed || !v.Degraded {
		t.Fatalf("admitted %v, alone %v, %v", v.Allowed, v.Degraded, err)
	}
	back(t, server, n)
	if !onRecord(t, server.Client(), "alice", id) {
		t.Error("Redis was not told")
	}
	if n.log.Count("admitted=0") != 0 {
		t.Errorf("the log is\n%s", n.log.String())
	}
}

// A Redis that hangs is not away at once: its calls fail, and a release is journalled.
func TestTake_RedisHangs_UnavailableThenAlone(t *testing.T) {
	server := redistest.Alone(t)
	n := start(t, server.URL())
	n.admit(t, "alice", false)
	server.Pause()
	defer server.Resume()
	id := throttle.NewID()
	_, err := n.mailbox.TakeID(t.Context(), "alice", id)
	unavailable(t, err)
	if s := n.State(); s.Away > 0 || s.Journal > 0 {
		t.Errorf("after one late call: %+v", s)
	}
	must.Get(n.mailbox.Release(t.Context(), "alice", throttle.Admission{ID: id}))(t)
	if s := n.State(); s.Journal != 1 {
		t.Errorf("after the release: %+v", s)
	}
	n.awaitAlone(t)
	n.admit(t, "alice", true)
	n.admit(t, "alice", true)
	server.Resume()
	n.awaitHealthy(t)
	onRedisAre(t, server, 3)
}

// The caller knows whether its id may be repeated, and so whether to release what a lost reply may
// have charged.
func TestTake_ReplyLost_ReleasedByTheCallerAlone(t *testing.T) {
	server := redistest.Alone(t)
	proxy := redistest.Proxy(t, server.Addr)
	n, other := start(t, proxy.URL()), start(t, server.URL())
	n.admit(t, "alice", false) // the script is known
	proxy.CutReplies(2, "{alice}")
	mine, repeated := throttle.NewID(), throttle.NewID()
	for _, id := range []throttle.ID{mine, repeated} {
		_, err := n.mailbox.TakeID(t.Context(), "alice", id)
		unavailable(t, err)
	}
	if v, err := other.mailbox.TakeID(t.Context(), "alice", repeated); err != nil || !v.Allowed || v.Sent != 3 {
		t.Errorf("repeated at another node: %+v, %v", v, err)
	}
	if released, err := n.mailbox.Release(t.Context(), "alice", throttle.Admission{ID: mine}); err != nil || !released {
		t.Errorf("released %v, %v", released, err)
	}
	n.awaitHealthy(t)
	onRedisAre(t, server, 2)
	if !onRecord(t, server.Client(), "alice", repeated) {
		t.Error("a take that was answered at another node is not on record")
	}
}

// Without the worker, the call itself has Redis told before it decides.
func TestTake_JournalNotEmpty_RedisToldFirst(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	n := open(t, t.TempDir(), server.URL())
	away(t, server, n)
	for range 3 {
		n.admit(t, "alice", true)
	}
	n.admit(t, "bob", true)
	server.Restart()
	servertest.Eventually(t, "Redis to decide", func() bool {
		v, err := n.mailbox.Take(context.Background(), "alice")
		if err == nil && v.Allowed {
			t.Fatal("Redis admitted a fourth")
		}
		return err == nil && !v.Degraded
	})
	if s := n.State(); s.Journal != 1 || s.Since == 0 {
		t.Errorf("before the worker runs: %+v", s)
	}
}

// A call ends with its context also while another one syncs the journal of its key.
func TestTake_JournalIsSynced_WaitsWithinItsContext(t *testing.T) {
	server := redistest.Durable(t)
	proxy := redistest.Proxy(t, server.Addr)
	n := open(t, t.TempDir(), proxy.URL())
	away(t, server, n)
	n.admit(t, "alice", true)
	proxy.DropReplies(1, "alice")
	server.Restart()
	servertest.Eventually(t, "Redis to be back", func() bool { return n.State().Away == 0 })
	first := make(chan error, 1)
	go func() {
		_, err := n.mailbox.Take(context.Background(), "alice")
		first <- err
	}()
	servertest.Eventually(t, "the journal to be sent", func() bool { return proxy.Lost() > 0 })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := n.mailbox.Take(ctx, "alice")
	unavailable(t, err)
	if !errors.Is(err, throttle.ErrUnchanged) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
	select {
	case err := <-first:
		t.Errorf("it waited for the other call, which ended with %v", err)
	default:
	}
	<-first
}

// tellOnce has Redis told of what a node does alone, while the first reply to a script is lost.
func tellOnce(t *testing.T, script string, before, alone func(n *node)) (*redistest.Server, *redistest.FaultyProxy, *node) {
	t.Helper()
	server := redistest.Durable(t)
	proxy := redistest.Proxy(t, server.Addr)
	n := open(t, t.TempDir(), proxy.URL())
	before(n)
	away(t, server, n)
	alone(n)
	server.Restart()
	proxy.CutReplies(1, script)
	n.Start()
	servertest.Eventually(t, "Redis to be told", func() bool { return proxy.Sent(script) > 0 })
	n.awaitHealthy(t)
	return server, proxy, n
}

func TestTell_ReplyLost_ToldTwiceCountedOnce(t *testing.T) {
	t.Parallel()
	var a throttle.Admission
	server, proxy, _ := tellOnce(t, tiersTaken, func(*node) {}, func(n *node) { a = n.admit(t, "alice", true) })
	if sent := proxy.Sent(a.ID.String()); sent < 3 { // once without the script, and twice with it
		t.Errorf("Redis was sent the admission %d times, want 3", sent)
	}
	onRedisAre(t, server, 1)
}

// A counter knows no ids, so its release is not told again when the reply was lost.
func TestTell_CounterReleaseReplyLost_NotToldTwice(t *testing.T) {
	t.Parallel()
	var a throttle.Admission
	_, _, n := tellOnce(t, actionTaken, func(n *node) { a = n.takeAction(t); n.takeAction(t) }, func(n *node) { n.releaseAction(t, a) })
	n.actionsLeft(t, 2)
}

// What Redis can never take does not keep the node degraded.
func TestTell_KeyOfAnotherType_Dropped(t *testing.T) {
	t.Parallel()
	server := redistest.Durable(t)
	n := start(t, server.URL())
	n.admit(t, "alice", false)
	keys := server.Client().Keys(t.Context(), "*alice*").Val()
	must.OK(t, server.Client().Set(t.Context(), keys[0], "text", 0).Err())
	away(t, server, n)
	n.admit(t, "alice", true)
	n.admit(t, "bob", true)
	back(t, server, n)
	if told := history(t, server.Client(), "bob"); len(told) != 1 || n.log.Count("journal operations dropped") != 1 || n.log.Count("alice") != 0 {
		t.Errorf("Redis has %v; the log is\n%s", told, n.log.String())
	}
}

// takeAction has the counter admit one.
func (n *node) takeAction(t *testing.T) throttle.Admission {
	t.Helper()
	id := throttle.NewID()
	v, err := n.action.TakeID(t.Context(), "caller", id)
	if err != nil || !v.Allowed {
		t.Fatalf("admitted %v, %v", v.Allowed, err)
	}
	return throttle.Admission{ID: id, At: v.At}
}

func (n *node) releaseAction(t *testing.T, a throttle.Admission) {
	t.Helper()
	if released, err := n.action.Release(t.Context(), "caller", a); err != nil || !released {
		t.Errorf("released %v, %v", released, err)
	}
}

func (n *node) actionsLeft(t *testing.T, want int) {
	t.Helper()
	if v, err := n.action.Peek(t.Context(), "caller"); err != nil || v.Degraded || v.Remaining() != want {
		t.Errorf("%d remain, alone %v, %v; want %d", v.Remaining(), v.Degraded, err, want)
	}
}

func TestRelease_InOutage_TakesItOffRedisToo(t *testing.T) {
	t.Parallel()
	server := redistest.Durable(t)
	n := start(t, server.URL())
	before, action := n.admit(t, "alice", false), n.takeAction(t)
	away(t, server, n)
	during, actionAlone := n.admit(t, "alice", true), n.takeAction(t)
	n.admit(t, "alice", true)
	n.takeAction(t)
	for _, a := range []throttle.Admission{before, during} {
		if released, err := n.mailbox.Release(t.Context(), "alice", a); err != nil || !released {
			t.Errorf("released %v, %v", released, err)
		}
	}
	n.releaseAction(t, actionAlone)
	n.releaseAction(t, action)
	back(t, server, n)
	onRedisAre(t, server, 1)
	n.actionsLeft(t, 2)
}

// asPaused makes a call about a record to a Redis that is killed before it answers.
func asPaused(t *testing.T, server *redistest.Server, proxy *redistest.FaultyProxy, call func() error) error {
	t.Helper()
	server.Pause()
	answered, sent := make(chan error), proxy.Sent(":{")
	go func() { answered <- call() }()
	servertest.Eventually(t, "Redis to be asked", func() bool { return proxy.Sent(":{") > sent })
	server.Kill()
	return <-answered
}

// A counter's release that Redis may have carried out is not journalled as well.
func TestRelease_CounterAsRedisDies_NotRepeatedAlone(t *testing.T) {
	server := redistest.Alone(t)
	proxy := redistest.Proxy(t, server.Addr)
	n := start(t, proxy.URL())
	a := n.takeAction(t)
	unavailable(t, asPaused(t, server, proxy, func() error {
		_, err := n.action.Release(t.Context(), "caller", a)
		return err
	}))
	n.awaitAlone(t)
	if s := n.State(); s.Journal != 0 {
		t.Errorf("after a lost reply: %+v", s)
	}
}

func TestReset_InOutage_Unavailable(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	n := start(t, server.URL())
	n.admit(t, "alice", false)
	away(t, server, n)
	_, err := n.mailbox.Reset(t.Context(), "alice")
	unavailable(t, err)
	back(t, server, n)
	n.admit(t, "alice", false)
	if cleared, err := n.mailbox.Reset(t.Context(), "alice"); err != nil || cleared != 1 {
		t.Errorf("cleared %d, %v", cleared, err)
	}
	away(t, server, n)
	for range 3 { // the own records were reset as well
		n.admit(t, "alice", true)
	}
}
