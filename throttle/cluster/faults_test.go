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

// A step that is taken once more, as its write was not confirmed, finds it done, and waits for the replicas all the same.
func TestLimiter_Unconfirmed_RepeatedWaitsAgain(t *testing.T) {
	t.Parallel()
	master := redistest.Alone(t)
	host, port, _ := net.SplitHostPort(master.Addr)
	replica := redistest.Alone(t, "replicaof "+host+" "+port)
	confirming := func() *throttle.Limiter { // WAIT may know only the writes of its connection
		client := open(t, redisx.Options{URL: master.URL(), Timeout: 500 * time.Millisecond, Confirm: 1})
		return limiter(t, client, throttle.DefaultPolicy())
	}
	l, again := confirming(), confirming()
	id := throttle.NewID()
	redistest.Healed(t, func() (throttle.Verdict, error) { return l.TakeID(ctx, "another", id) }) // the replica is in sync
	charged := take(t, l, "released").Admission
	take(t, l, "reset")
	for step, call := range map[string]func(l *throttle.Limiter) error{
		"take":    func(l *throttle.Limiter) error { _, err := l.TakeID(ctx, "taken", id); return err },
		"release": func(l *throttle.Limiter) error { _, err := l.Release(ctx, "released", charged); return err },
		"reset":   func(l *throttle.Limiter) error { _, err := l.Reset(ctx, "reset"); return err },
	} {
		replica.Pause()
		for _, l := range []*throttle.Limiter{l, again} {
			if err := call(l); !errors.Is(err, redisx.ErrUnconfirmed) {
				t.Errorf("%s without a replica: %v", step, err)
			}
		}
		replica.Resume()
		redistest.Healed(t, func() (bool, error) { return true, call(again) })
	}
	if v := must.Get(l.Peek(ctx, "taken"))(t); v.Sent != 1 {
		t.Errorf("taken %d times", v.Sent)
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
	servers.Masters[1].Resume()
	v := redistest.Healed(t, func() (throttle.Verdict, error) { return l.Peek(ctx, late) })
	if v.Sent != 0 {
		t.Errorf("it was charged late: %+v", v)
	}
}

// A call that a server runs when its caller has gone charges nothing, whatever was known of the server's clock.
func TestTake_ServerGoesOnLate_ChargesNothing(t *testing.T) {
	t.Parallel()
	const timeout, slow = time.Second, 700 * time.Millisecond
	for name, before := range map[string]func(t *testing.T, l *throttle.Limiter, server *redistest.Server){
		"the first call": func(*testing.T, *throttle.Limiter, *redistest.Server) {},
		"after an answer": func(t *testing.T, l *throttle.Limiter, _ *redistest.Server) {
			take(t, l, "before")
		},
		"after a slow answer": func(t *testing.T, l *throttle.Limiter, server *redistest.Server) {
			take(t, l, "before")
			server.Pause()
			answered := make(chan error, 1)
			go func() { _, err := l.Take(ctx, "slow"); answered <- err }()
			<-time.After(slow)
			server.Resume()
			must.OK(t, <-answered)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, server := alone(t)
			own := open(t, redisx.Options{URL: server.URL(), Timeout: timeout})
			take(t, limiter(t, own, throttle.DefaultPolicy()), "another") // so that there is a connection
			l := limiter(t, own, throttle.DefaultPolicy())
			before(t, l, server)
			server.Pause()
			_, err := l.Take(ctx, mailbox)
			server.Resume()
			if !errors.Is(err, throttle.ErrUnavailable) {
				t.Errorf("at a server that hangs: %v", err)
			}
			must.OK(t, own.Close())
			servertest.Eventually(t, "the server to have read all", func() bool { return server.Info("clients", "connected_clients") == "1" })
			if v := must.Get(limiter(t, client, throttle.DefaultPolicy()).Peek(ctx, mailbox))(t); v.Sent != 0 {
				t.Errorf("it was charged late: %+v", v)
			}
		})
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
	server.Resume()
	for i := range 20 {
		v := redistest.Healed(t, func() (throttle.Verdict, error) { return l.Peek(ctx, fmt.Sprint("mailbox", i)) })
		if v.Sent != 0 {
			t.Errorf("mailbox%d was charged", i)
		}
	}
}
