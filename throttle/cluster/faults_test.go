package cluster_test

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle"
)

// Confirmed admissions survive the master, and the client finds the new one.
func TestTake_SentinelFailover_ConfirmedSendsCount(t *testing.T) {
	t.Parallel()
	servers := redistest.Sentinel(t, 1)
	l := limiter(t, open(t, redisx.Options{URL: servers.URL(), Timeout: 2 * time.Second, Confirm: 1}), throttle.DefaultPolicy())
	for i := range 20 {
		take(t, l, fmt.Sprint("mailbox", i))
	}
	servers.Failover()
	for i := range 20 {
		v := redistest.Healed(t, func() (throttle.Verdict, error) { return l.Peek(ctx, fmt.Sprint("mailbox", i)) })
		if v.Allowed || v.Sent != 1 {
			t.Errorf("mailbox%d after the failover: %+v", i, v)
		}
	}
	// The new master has no replica to confirm a send.
	if _, err := l.Take(ctx, mailbox); !errors.Is(err, throttle.ErrUnavailable) || !errors.Is(err, redisx.ErrUnconfirmed) {
		t.Errorf("without a replica: %v", err)
	}
	servers.Replicas[0].Restart()
	servers.AwaitReplicas()
	redistest.Healed(t, func() (throttle.Verdict, error) { return l.Take(ctx, "new") })
}

// An id that is on record is confirmed again, as the first Take may not have been.
func TestTake_Unconfirmed_RepeatedWaitsAgain(t *testing.T) {
	t.Parallel()
	master := redistest.Alone(t)
	l := limiter(t, open(t, redisx.Options{URL: master.URL(), Timeout: 500 * time.Millisecond, Confirm: 1}), throttle.DefaultPolicy())
	id := throttle.NewID()
	for range 2 {
		if _, err := l.TakeID(ctx, mailbox, id); !errors.Is(err, redisx.ErrUnconfirmed) {
			t.Errorf("without a replica: %v", err)
		}
	}
	host, port, _ := net.SplitHostPort(master.Addr)
	replica := redistest.Alone(t, "replicaof "+host+" "+port)
	redistest.Healed(t, func() (throttle.Verdict, error) { return l.Take(ctx, "another") })
	replica.Pause()
	id = throttle.NewID()
	// WAIT knows only the writes of its connection: the second client has not written yet.
	again := limiter(t, open(t, redisx.Options{URL: master.URL(), Timeout: 500 * time.Millisecond, Confirm: 1}), throttle.DefaultPolicy())
	for _, l := range []*throttle.Limiter{l, again} {
		if _, err := l.TakeID(ctx, mailbox+"2", id); !errors.Is(err, throttle.ErrUnavailable) {
			t.Errorf("with the replica stopped: %v", err)
		}
	}
	replica.Resume()
	v := redistest.Healed(t, func() (throttle.Verdict, error) { return again.TakeID(ctx, mailbox+"2", id) })
	if !v.Allowed || v.Sent != 1 {
		t.Errorf("%+v", v)
	}
}

// A master whose clock is an hour ahead does not lengthen the calls of another.
func TestTake_AnotherMastersClockAhead_ChargesNothingLate(t *testing.T) {
	t.Parallel()
	const timeout = 400 * time.Millisecond
	servers := redistest.Cluster(t)
	servers.Masters[0].WithClock()(time.Hour)
	servers.AwaitReady()
	l := limiter(t, open(t, redisx.Options{URL: servers.URL(), Timeout: timeout}), throttle.DefaultPolicy())
	keyOn := func(master *redistest.Server, from int) string {
		for i := from; ; i++ {
			if key := fmt.Sprint("mailbox", i); servers.MasterOf("{"+key+"}") == master {
				return key
			}
		}
	}
	late := keyOn(servers.Masters[1], 0)
	for _, warm := range []string{keyOn(servers.Masters[1], 1000), keyOn(servers.Masters[0], 0)} {
		redistest.Healed(t, func() (throttle.Verdict, error) { return l.Take(ctx, warm) })
	}
	servers.Masters[1].Pause()
	if _, err := l.Take(ctx, late); !errors.Is(err, throttle.ErrUnavailable) {
		t.Errorf("at a master that hangs: %v", err)
	}
	over := time.Now().Add(timeout)
	servertest.Eventually(t, "the call's time to be over", func() bool { return time.Now().After(over) })
	servers.Masters[1].Resume()
	v := redistest.Healed(t, func() (throttle.Verdict, error) { return l.Peek(ctx, late) })
	if v.Sent != 0 {
		t.Errorf("it was charged late: %+v", v)
	}
}

// An answer that came late does not lengthen the calls after it.
func TestTake_AfterSlowAnswer_ChargesNothingLate(t *testing.T) {
	t.Parallel()
	const timeout, slow = time.Second, 700 * time.Millisecond
	client, server := alone(t)
	l := limiter(t, open(t, redisx.Options{URL: server.URL(), Timeout: timeout}), throttle.DefaultPolicy())
	take(t, l, "first")
	pausedFor := func(at time.Duration, key string) error {
		begin := time.Now()
		server.Pause()
		ended := make(chan error, 1)
		go func() { _, err := l.Take(ctx, key); ended <- err }()
		servertest.Eventually(t, "the end of the pause", func() bool { return time.Since(begin) > at })
		server.Resume()
		return <-ended
	}
	must.OK(t, pausedFor(slow, "slow"))
	if err := pausedFor(timeout+slow/2, mailbox); !errors.Is(err, throttle.ErrUnavailable) {
		t.Errorf("at a server that hangs: %v", err)
	}
	v := redistest.Healed(t, func() (throttle.Verdict, error) {
		return limiter(t, client, throttle.DefaultPolicy()).Peek(ctx, mailbox)
	})
	if v.Sent != 0 {
		t.Errorf("it was charged late: %+v", v)
	}
}

// Each Take at a server that hangs ends in time, and when the server goes on it
// charges nothing for callers that have gone.
func TestTake_ServerHangs_EndsInTimeAndChargesNothing(t *testing.T) {
	const timeout, late = 400 * time.Millisecond, 2 * time.Second
	server := redistest.Alone(t)
	l := limiter(t, open(t, redisx.Options{URL: server.URL(), Timeout: timeout}), throttle.DefaultPolicy())
	redistest.Healed(t, func() (throttle.Verdict, error) { return l.Take(ctx, "warm") })
	server.Pause()
	var calls sync.WaitGroup
	for i := range 20 {
		calls.Go(func() {
			begin := time.Now()
			_, err := l.Take(ctx, fmt.Sprint("mailbox", i))
			if took := time.Since(begin); !errors.Is(err, throttle.ErrUnavailable) || took > late {
				t.Errorf("%v after %v", err, took)
			}
		})
	}
	calls.Wait()
	// The clock of the first answer may have been off by as long as that answer took.
	over := time.Now().Add(timeout)
	servertest.Eventually(t, "the calls' time to be over", func() bool { return time.Now().After(over) })
	server.Resume()
	for i := range 20 {
		v := redistest.Healed(t, func() (throttle.Verdict, error) { return l.Peek(ctx, fmt.Sprint("mailbox", i)) })
		if v.Sent != 0 {
			t.Errorf("mailbox%d was charged", i)
		}
	}
}
