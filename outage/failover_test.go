package outage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/servertest"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// A master of a Cluster is gone, and its replica with it. As long as the others go on, what
// lies on them is decided together and the rest alone; and when Redis calls the whole of it
// down, all is.
func TestClusterDown(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t)
	coverage := func(word string, at ...*redistest.Server) {
		for _, s := range at {
			order(t, s, "CONFIG", "SET", "cluster-require-full-coverage", word)
		}
	}
	coverage("no", servers.Masters...)
	n := openPeer(t, servers.URL(), throttletest.Policy(t, "day=3/24h"))
	its, others := keyOn(servers, 0), keyOn(servers, 1)
	n.send(its, false)
	n.send(others, false)
	master, replica := servers.Masters[0], servers.Replicas[0]
	keep(t, master)
	keep(t, replica)
	replica.Kill()
	master.Kill()
	n.send(its, true)
	n.send(others, false)

	coverage("yes", servers.Masters[1:]...)
	servertest.Eventually(t, "the cluster to be down", func() bool {
		_, err := n.shared.Peek(context.Background(), others)
		return redisstore.Undone(err) && strings.Contains(err.Error(), "CLUSTERDOWN")
	})
	n.send(others, true)

	master.Restart() // before its replica, which would have its place
	replica.Restart()
	servers.AwaitReady()
	awaitHealth(t, n.watch)
	n.send(its, false)
	if n.send(others, false).Allowed {
		t.Error("one more than the tiers was admitted")
	}
	n.onRecord()
}

// keyOn is a key whose record lies on a master.
func keyOn(servers *redistest.ClusterServers, i int) string {
	for n := 0; ; n++ {
		if key := fmt.Sprintf("%d@example.com", n); servers.MasterOf("mailgate:{}"+key) == servers.Masters[i] {
			return key
		}
	}
}

// A master dies with what its replica has not heard yet, and Sentinel puts that in its place.
// Nothing else is lost: neither what had come to the replica, nor what the nodes admitted
// alone; and they are well again within five seconds.
func TestOrdealOfAFailover(t *testing.T) {
	t.Parallel()
	servers := redistest.Sentinel(t)
	o := openOrdeal(t, []string{servers.URL(), servers.URL(), servers.URL()})
	o.keys, o.stays = 200, true
	var copied int64  // until when all had come to the replica
	var alone []int64 // when the nodes admitted alone
	var healed time.Duration
	o.callWhile(func() {
		sleep(time.Second)
		copied = allCopied(t, servers.Master)
		servers.Master.Kill()
		for i, n := range o.peers {
			alone = append(alone, n.send(fmt.Sprintf("alone%d@example.com", i), true).Now)
		}
		servers.Failover()
		promoted := time.Now()
		for _, n := range o.peers {
			awaitHealth(t, n.watch)
		}
		healed = time.Since(promoted)
		sleep(300 * time.Millisecond)
	})
	if healed > 5*time.Second+5*slack {
		t.Errorf("well again after %v", healed)
	}
	for i, n := range o.peers {
		awaitHealth(t, n.watch)
		n.onRecord()
		if got := n.history(fmt.Sprintf("alone%d@example.com", i)); len(got) != 1 || got[0].At != alone[i] {
			t.Errorf("on record is %v, admitted at %d", got, alone[i])
		}
	}
	lost := o.judgeLoss(copied)
	t.Logf("well again after %v; %d lost by replication, %d admitted alone", healed.Round(time.Millisecond), lost, o.alone)
	if o.alone == 0 || len(o.errs) > 0 {
		t.Errorf("%d were admitted alone, and there were errors: %v", o.alone, o.errs)
	}
}

// allCopied returns when a replica has all that was written before some moment, and which
// moment by the master's clock.
func allCopied(t *testing.T, master *redistest.Server) (at int64) {
	t.Helper()
	ctx := context.Background()
	conn := master.Client().Conn()
	defer conn.Close()
	now, err := conn.Time(ctx).Result()
	failed := conn.Set(ctx, "copied", 1, 0).Err()
	copies, unheard := conn.Wait(ctx, 1, 20*time.Second).Result()
	if err := errors.Join(err, failed, unheard); err != nil || copies != 1 {
		t.Fatalf("%d copies, %v", copies, err)
	}
	return now.UnixMilli()
}

// judgeLoss compares what Redis has with what the callers were told, and counts what it may
// have lost: what was admitted together, and by then was not certain to be copied.
func (o *ordeal) judgeLoss(copied int64) (lost int) {
	o.t.Helper()
	for key, sends := range o.admitted {
		there := map[string]bool{}
		for _, send := range o.peers[0].history(key) {
			id := send.ID.String()
			v, told := sends[id]
			// After a reply that was lost it is there from when Redis decided.
			if !told || there[id] || max(v.Now-send.At, send.At-v.Now) > (timeout+slack).Milliseconds() {
				o.t.Errorf("%s: %s is there from %d, and its caller was told %v of %d", key, id, send.At, told, v.Now)
			}
			there[id] = true
		}
		for id, v := range sends {
			switch {
			case there[id]:
			case v.Degraded || v.Now < copied:
				o.t.Errorf("%s: %s is lost, and it was admitted at %d (alone: %v); what came before %d was copied", key, id, v.Now, v.Degraded, copied)
			default:
				lost++
			}
		}
	}
	return lost
}
