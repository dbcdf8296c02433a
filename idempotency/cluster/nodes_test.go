package cluster_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/idempotency/cluster"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
)

func TestConformanceSentinel(t *testing.T) {
	t.Parallel()
	conform(t, redistest.Sentinel(t).URL(), 2_000)
}

// A failover forgets nothing that the replica had confirmed: what was done is not done
// again, nor what is under way.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	servers := redistest.Sentinel(t)
	servers.AwaitReplica()
	sure := open(t, defaults, redisstore.Options{URL: servers.URL(), Timeout: patient, Confirm: 1})
	keeper := open(t, defaults, redisstore.Options{URL: servers.URL(), Timeout: 5 * time.Second})
	ctx := context.Background()
	done := expect(t, sure, "done", idempotency.Started).Lease
	underWay := expect(t, sure, "under-way", idempotency.Started).Lease
	if kept, err := sure.Finish(ctx, done, sent); !kept || err != nil {
		t.Fatalf("finish: %t, %v", kept, err)
	}
	servers.Failover()
	state := func(key string) idempotency.State {
		t.Helper()
		return redistest.Healed(t, func() (idempotency.Outcome, error) { return keeper.Begin(ctx, nameOf(key), request) }).State
	}
	if got := state("under-way"); got != idempotency.InFlight {
		t.Errorf("what was under way is %v after the failover", got)
	}
	if got := state("done"); got != idempotency.Replay {
		t.Errorf("what was done is %v after the failover", got)
	}
	if kept, err := keeper.Finish(ctx, underWay, sent); !kept || err != nil {
		t.Errorf("finish after the failover: %t, %v", kept, err)
	}
}

// While its slot moves from master to master a request is begun by one of 64 and no other,
// who then keeps its answer for all.
func TestRaceThroughASlotMigration(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t)
	for name, confirm := range map[string]int{"one copy": 0, "confirmed": 1} {
		t.Run(name, func(t *testing.T) {
			// The braces put all names into the one slot that moves.
			keeper := open(t, defaults, redisstore.Options{URL: servers.URL(), Prefix: "{moving}", Timeout: patient, Confirm: confirm})
			for round := range 6 {
				raceThroughAMigration(t, servers, keeper, fmt.Sprint(confirm, "-", round))
			}
		})
	}
}

func raceThroughAMigration(t *testing.T, servers *redistest.ClusterServers, keeper *cluster.Keeper, key string) {
	t.Helper()
	ctx, record := context.Background(), "{moving}idempotency.requests:"+nameOf(key).Text()
	from := servers.MasterOf(record)
	to := servers.AnotherMaster(from)
	type begun struct {
		many  int
		lease idempotency.Lease
	}
	raced := make(chan begun)
	servers.BeginMigration(record, from, to)
	go func() {
		many, lease := race(t, keeper, key)
		raced <- begun{many, lease}
	}()
	one := begin(t, keeper, key) // there is a record now, here or there
	if from.Client().Exists(ctx, record).Val() == 1 {
		servers.MoveKey(record, from, to)
	}
	servers.FinishMigration(record, from, to)
	all := <-raced
	if one.State == idempotency.Started {
		all = begun{all.many + 1, one.Lease}
	}
	if all.many != 1 {
		t.Fatalf("%d were told to go on, want 1", all.many)
	}
	if kept, err := keeper.Finish(ctx, all.lease, sent); !kept || err != nil {
		t.Fatalf("finish: %t, %v", kept, err)
	}
	expect(t, keeper, key, idempotency.Replay)
	if err := servers.Client().Del(ctx, record).Err(); err != nil { // no key may stay behind when the slot moves again
		t.Fatal(err)
	}
}
