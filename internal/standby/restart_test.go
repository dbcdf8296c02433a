package standby_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// However often Redis goes and comes back, one node never admits more than the tiers.
func TestTake_RedisComesAndGoes_NeverMoreThanTheTiers(t *testing.T) {
	t.Parallel()
	server := redistest.Durable(t)
	n := start(t, server.URL())
	var admitted [150]atomic.Int64
	var next atomic.Int64
	var stop atomic.Bool
	var callers sync.WaitGroup
	for range 6 {
		callers.Go(func() {
			for !stop.Load() {
				i := next.Add(1) / 8 % int64(len(admitted))
				if v, err := n.mailbox.Take(t.Context(), fmt.Sprint("k", i)); err == nil && v.Allowed {
					admitted[i].Add(1)
				}
			}
		})
	}
	moreCalls := func() {
		from := next.Load()
		servertest.Eventually(t, "more calls", func() bool { return next.Load() > from+300 })
	}
	for range 3 {
		moreCalls()
		away(t, server, n)
		moreCalls()
		server.Restart()
		servertest.Eventually(t, "Redis to be asked", func() bool { return n.State().Away == 0 })
	}
	stop.Store(true)
	callers.Wait()
	n.awaitHealthy(t)
	for i := range admitted {
		got := history(t, server.Client(), fmt.Sprint("k", i))
		if said := admitted[i].Load(); said > 3 || int64(len(got)) < said {
			t.Errorf("key %d: %d admitted, Redis has %d", i, said, len(got))
		}
	}
}

// What a node admits alone before a restart and after it is all told to Redis.
func TestTake_RestartInOutage_RedisHasAll(t *testing.T) {
	t.Parallel()
	server, dir := redistest.Alone(t), t.TempDir()
	n := open(t, dir, server.URL())
	away(t, server, n)
	before := n.admit(t, "alice", true)
	n.end()
	n = open(t, dir, server.URL())
	n.awaitAlone(t)
	after := n.admit(t, "alice", true)
	n.Start()
	back(t, server, n)
	for _, a := range []throttle.Admission{before, after} {
		if !onRecord(t, server.Client(), "alice", a.ID) {
			t.Errorf("Redis lacks %s of %s and %s", a.ID, before.ID, after.ID)
		}
	}
}

// early is a shared home whose clock is an hour ahead of the machine's.
type early struct{ throttle.Home }

func (e early) Do(ctx context.Context, key string, op throttle.Op) (throttle.Reply, error) {
	r, err := e.Home.Do(ctx, key, op)
	r.Now += hour
	return r, err
}

// The node's clock is Redis's, in an outage and after a restart in it.
func TestClock_InOutage_GoesOnFromRedis(t *testing.T) {
	server := redistest.Alone(t)
	dir := t.TempDir()
	n := open(t, dir, server.URL())
	n.mailbox = n.Limiter("mailbox", throttle.New(tiers, early{onRedis(t, n.client, "mailbox", tiers).Home}), n.own)
	together := n.admit(t, "alice", false)
	away(t, server, n)
	alone := n.admit(t, "alice", true)
	if after := alone.At - together.At; after < 0 || after > hour/2 {
		t.Errorf("a send alone is on record %d ms after the one before", after)
	}
	before := n.clock.Now()
	n.end()
	if n = open(t, dir, server.URL()); n.clock.Now() < before {
		t.Errorf("the clock was at %d, and is at %d after a restart", before, n.clock.Now())
	}
}

// An answer of Redis that came late does not set the node's clock back.
func TestClock_SlowAnswer_KeepsTheTime(t *testing.T) {
	const delay = 300
	n := start(t, redistest.Alone(t).URL())
	slow := &throttletest.Faulty{}
	l := n.Limiter("slow", slow.Break(onRedis(t, n.client, "slow", tiers)), local.New(n.store.Table("slow"), tiers))
	must.Get(l.Take(t.Context(), "alice"))(t)
	slow.On(func(_ context.Context, event, _ string) error {
		if event == "taken" {
			<-time.After(delay * time.Millisecond)
		}
		return nil
	})
	v := must.Get(l.Take(t.Context(), "bob"))(t)
	if passed := n.clock.Now() - v.Now; passed < delay-5 {
		t.Errorf("%d ms after Redis decided, %d have passed by the node's clock", delay, passed)
	}
}

// A decision by Redis that is still on its way when the master goes away counts for the node alone.
func TestTake_RedisDecidesAtTheSwitch_NodeAloneCountsIt(t *testing.T) {
	server := redistest.Alone(t)
	n := start(t, server.URL())
	one := throttletest.Policy(t, "day=1/24h")
	slow, decided, arrive := &throttletest.Faulty{}, make(chan struct{}), make(chan struct{})
	slow.On(func(_ context.Context, event, _ string) error {
		if event == "taken" {
			decided <- struct{}{}
			<-arrive
		}
		return nil
	})
	l := n.Limiter("one", slow.Break(onRedis(t, n.client, "one", one)), local.New(n.store.Table("one"), one))
	verdicts := make(chan throttle.Verdict, 2)
	take := func() {
		v, err := l.Take(t.Context(), "alice")
		if err != nil {
			t.Error(err)
		}
		verdicts <- v
	}
	go take()
	<-decided
	away(t, server, n)
	go take()
	select {
	case v := <-verdicts:
		t.Errorf("the node decided alone meanwhile: admitted %v", v.Allowed)
		verdicts <- v
	case <-time.After(100 * time.Millisecond): // it waits
	}
	close(arrive)
	if a, b := <-verdicts, <-verdicts; a.Allowed == b.Allowed {
		t.Errorf("admitted %v and %v, want one", a.Allowed, b.Allowed)
	}
}
