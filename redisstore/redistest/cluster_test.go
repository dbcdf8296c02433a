package redistest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// AwaitReady sees a failover through, and a node that comes back in its place.
func TestAReplicaTakesOver(t *testing.T) {
	t.Parallel() // it is mostly waiting
	const key = "survivor"
	cluster := Cluster(t)
	ctx := deadline(t, 2*clusterLimit)
	old := cluster.MasterOf(key)
	replica := cluster.ReplicaOf(old)
	_, err := old.Client().Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Set(ctx, key, "kept", 0)
		pipe.Do(ctx, "WAIT", 1, 5000)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	old.Kill()
	cluster.AwaitReady()
	if got := cluster.MasterOf(key); got != replica {
		t.Fatalf("the master is now %s, want the replica %s", got.Addr, replica.Addr)
	}
	if got, err := cluster.Client().Get(ctx, key).Result(); got != "kept" {
		t.Errorf("after the failover the cluster says %q, %v", got, err)
	}
	old.Restart()
	cluster.AwaitReady()
	if got := cluster.ReplicaOf(replica); got != old {
		t.Errorf("the old master is not the new one's replica, %s is", got.Addr)
	}
	if err := old.Client().Get(ctx, key).Err(); !strings.HasPrefix(fmt.Sprint(err), "MOVED") {
		t.Errorf("the old master answers for the key: %v", err)
	}
}
