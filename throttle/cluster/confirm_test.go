package cluster_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
)

// What no replica has is no yes, whether it is new or repeated. A no waits for none.
func TestConfirmedByAReplica(t *testing.T) {
	master := redistest.Alone(t)
	host, port, _ := net.SplitHostPort(master.Addr)
	replica := redistest.Alone(t, "replicaof "+host+" "+port)
	clock, ctx := clocktest.New(1_800_000_000_000), context.Background()
	ways := waysToThree(openWith(t, threeAMinute, redisstore.Options{URL: master.URL(), Clock: clock.Now, Confirm: 1, Timeout: 500 * time.Millisecond}))
	ids := make([]throttle.ID, len(ways))
	for i, way := range ways {
		ids[i] = admit(t, way, "confirmed") // waits for the first synchronisation, by insisting
		full(t, way, "full")
	}
	if n := replica.Client().DBSize(ctx).Val(); int(n) != 2*len(ways) {
		t.Errorf("of %d keys %d are at the replica", 2*len(ways), n)
	}

	replica.Pause()
	lost := throttle.NewID()
	for i, way := range ways {
		for what, id := range map[string]throttle.ID{"new": lost, "repeated": ids[i]} {
			if v, err := way.Take(ctx, "confirmed", id); !errors.Is(err, throttle.ErrUnavailable) || v.Allowed {
				t.Errorf("way %d: a %s admission without its replica: allowed %v, %v", i, what, v.Allowed, err)
			}
		}
		if v := take(t, way, "full", throttle.NewID()); v.Allowed {
			t.Errorf("way %d: without a replica a fourth send is admitted", i)
		}
	}
	replica.Resume()
	for i, way := range ways {
		if v := take(t, way, "confirmed", lost); !v.Allowed {
			t.Errorf("way %d: taken again with the same id once the replica is back: not admitted", i)
		}
	}
	// Some servers' WAIT is for what all have written, so that it does not tell whether a
	// repetition writes.
	for key := range everything(t, master) {
		master.Client().Persist(ctx, key)
	}
	for _, way := range ways {
		take(t, way, "confirmed", lost)
		if _, err := way.Reset(ctx, "full"); err != nil {
			t.Error(err)
		}
	}
	everything(t, master) // which expires again
}

func TestConfirmedInACluster(t *testing.T) {
	servers := redistest.Cluster(t)
	limiter := open(t, redisstore.Options{URL: servers.URL(), Confirm: 1, Timeout: 2 * time.Second})
	for range 30 {
		admit(t, limiter, mailboxOf("cluster"))
	}
	mailbox := mailboxOf("alone")
	master := servers.MasterOf("mailgate:{}" + mailbox)
	elsewhere := open(t, redisstore.Options{URL: servers.AnotherMaster(master).URL(), Confirm: 1, Timeout: patient})
	if _, err := elsewhere.Take(context.Background(), mailbox, throttle.NewID()); !errors.Is(err, throttle.ErrUnchanged) {
		t.Errorf("sent on to where it cannot follow: %v is no proof", err)
	}
	replica := servers.ReplicaOf(master)
	replica.Pause()
	if v, err := limiter.Take(context.Background(), mailbox, throttle.NewID()); !errors.Is(err, throttle.ErrUnavailable) || v.Allowed {
		t.Errorf("an admission without its replica: allowed %v, %v", v.Allowed, err)
	}
	replica.Resume()
}
