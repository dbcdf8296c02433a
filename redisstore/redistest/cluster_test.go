package redistest

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// One cluster serves all of these, in this order: the last ones kill nodes.
func TestCluster(t *testing.T) {
	t.Parallel() // it is mostly waiting
	start := time.Now()
	cluster := Cluster(t)
	t.Logf("ready after %v", time.Since(start))
	t.Run("every key has its master", func(t *testing.T) { everyKeyHasItsMaster(t, cluster) })
	t.Run("replicas have what masters have", func(t *testing.T) { replicasFollow(t, cluster) })
	t.Run("a slot moves in steps", func(t *testing.T) { slotMovesInSteps(t, cluster) })
	t.Run("a slot is not moved from under its keys", func(t *testing.T) { slotKeepsItsKeys(t, cluster) })
	t.Run("a replica takes over", func(t *testing.T) { replicaTakesOver(t, cluster) })
	t.Run("a paused master is replaced", func(t *testing.T) { pausedIsReplaced(t, cluster) })
	t.Run("clients are sent through a proxy", func(t *testing.T) { clientsAreSentThroughAProxy(t, cluster) })
}

func everyKeyHasItsMaster(t *testing.T, cluster *ClusterServers) {
	address, err := url.Parse(cluster.URL())
	if err != nil || address.Scheme != "redis+cluster" {
		t.Fatalf("URL is %s, %v", cluster.URL(), err)
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: strings.Split(address.Host, ",")})
	defer client.Close()
	ctx := deadline(t, 10*time.Second)
	used := map[*Server]int{}
	for i := range 60 {
		key := fmt.Sprintf("key:{%d}:%d", i, i)
		if err := client.Set(ctx, key, i, 0).Err(); err != nil {
			t.Fatal(err)
		}
		master := cluster.MasterOf(key)
		used[master]++
		// Any other node would answer MOVED.
		if got, err := master.Client().Get(ctx, key).Int(); err != nil || got != i {
			t.Errorf("the master of %s holds %d, %v; want %d", key, got, err, i)
		}
		if slot := master.Client().ClusterKeySlot(ctx, key).Val(); int(slot) != slotOf(key) {
			t.Errorf("%s is in slot %d, taken for %d", key, slot, slotOf(key))
		}
	}
	for _, master := range cluster.Masters {
		if used[master] == 0 {
			t.Errorf("%s is the master of none of 60 keys", master.Addr)
		}
	}
}

func replicasFollow(t *testing.T, cluster *ClusterServers) {
	ctx := deadline(t, 10*time.Second)
	for i, master := range cluster.Masters {
		if got := cluster.ReplicaOf(master); got != cluster.Replicas[i] {
			t.Fatalf("%s is followed by %s, want %s", master.Addr, got.Addr, cluster.Replicas[i].Addr)
		}
		_, err := master.Client().Pipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, keyOf(cluster, master, "followed"), "x", 0)
			pipe.Do(ctx, "WAIT", 1, 5000)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		mine, theirs := master.Client().DBSize(ctx).Val(), cluster.Replicas[i].Client().DBSize(ctx).Val()
		if mine != theirs || mine == 0 {
			t.Errorf("%s has %d keys, its replica %d", master.Addr, mine, theirs)
		}
	}
}

// keyOf makes a key that belongs to this master.
func keyOf(cluster *ClusterServers, master *Server, name string) string {
	for i := 0; ; i++ {
		if key := fmt.Sprintf("{%s %d}", name, i); cluster.MasterOf(key) == master {
			return key
		}
	}
}

func slotMovesInSteps(t *testing.T, cluster *ClusterServers) {
	from, to := cluster.Masters[0], cluster.Masters[1]
	key := keyOf(cluster, from, "moved")
	sibling := key + " and another" // of the same slot
	slot := slotOf(key)
	ctx := deadline(t, 30*time.Second)
	if err := from.Client().Set(ctx, key, "luggage", 0).Err(); err != nil {
		t.Fatal(err)
	}
	// What each of the two says to somebody who asks for the key there.
	says := func(step string, s *Server, key, want string) {
		t.Helper()
		got, err := s.Client().Get(ctx, key).Result()
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s, %s says %q, want %q", step, s.Addr, got, want)
		}
	}
	moved := func(s *Server) string { return fmt.Sprintf("MOVED %d %s", slot, s.Addr) }
	ask := func(s *Server) string { return fmt.Sprintf("ASK %d %s", slot, s.Addr) }

	cluster.BeginMigration(key, from, to)
	says("begun", from, key, "luggage")
	says("begun", from, sibling, ask(to))
	says("begun", to, key, moved(from))

	cluster.MoveKey(key, from, to)
	says("key moved", from, key, ask(to))
	says("key moved", to, key, moved(from))
	if cluster.MasterOf(key) != from {
		t.Error("the slot has changed hands before the end")
	}

	cluster.FinishMigration(key, from, to)
	says("finished", from, key, moved(to))
	says("finished", to, key, "luggage")
	says("finished", cluster.Masters[2], key, moved(to))
	if cluster.MasterOf(key) != to {
		t.Error("the slot has not changed hands")
	}
	if got, err := cluster.Client().Get(ctx, key).Result(); got != "luggage" {
		t.Errorf("a cluster client reads %q, %v", got, err)
	}
	cluster.AwaitReady()
}

func slotKeepsItsKeys(t *testing.T, cluster *ClusterServers) {
	from, to := cluster.Masters[0], cluster.Masters[1]
	key := keyOf(cluster, from, "kept")
	ctx := deadline(t, 30*time.Second)
	watched := *cluster // the same servers, with another to tell of failures
	said := failing(t, func(tb testing.TB) {
		watched.t = tb
		watched.BeginMigration(key, from, to)
		watched.MoveKey(key, from, to)
	})
	if !strings.Contains(said, "is not there") {
		t.Errorf("moving a key that does not exist says %q", said)
	}
	if err := from.Client().Set(ctx, key, "x", 0).Err(); !strings.HasPrefix(fmt.Sprint(err), "ASK") {
		t.Fatalf("a new key in a slot on its way out: %v", err)
	}
	cluster.FinishMigration(key, from, to)

	// The next one has its key, which is not moved.
	key = keyOf(cluster, from, "kept")
	if err := from.Client().Set(ctx, key, "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	said = failing(t, func(tb testing.TB) {
		watched.t = tb
		watched.BeginMigration(key, from, to)
		watched.FinishMigration(key, from, to)
	})
	if !strings.Contains(said, "still at "+from.Addr) {
		t.Errorf("finishing too early says %q", said)
	}
	cluster.MoveKey(key, from, to)
	cluster.FinishMigration(key, from, to)
}

func replicaTakesOver(t *testing.T, cluster *ClusterServers) {
	const key = "survivor"
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
	start := time.Now()
	old.Kill()
	cluster.AwaitReady()
	t.Logf("failover after %v", time.Since(start))
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

// A master that stood still comes back as a replica.
func pausedIsReplaced(t *testing.T, cluster *ClusterServers) {
	const key = "still"
	old := cluster.MasterOf(key)
	replica := cluster.ReplicaOf(old)
	old.Pause()
	cluster.AwaitReady()
	if got := cluster.MasterOf(key); got != replica {
		t.Errorf("the master is now %s, want the replica %s", got.Addr, replica.Addr)
	}
	old.Resume()
	cluster.AwaitReady()
	if got := cluster.ReplicaOf(replica); got != old {
		t.Errorf("the old master is not the new one's replica, %s is", got.Addr)
	}
}

func clientsAreSentThroughAProxy(t *testing.T, cluster *ClusterServers) {
	const key = "before"
	master := cluster.MasterOf(key)
	other := cluster.AnotherMaster(master)
	refused := other.Refused("MOVED")
	proxy := cluster.ProxyBefore(master)
	ctx := deadline(t, 10*time.Second)
	if got, want := fmt.Sprint(other.Client().Get(ctx, key).Err()), fmt.Sprintf("MOVED %d %s", slotOf(key), proxy.Addr); got != want {
		t.Errorf("another says %q, want %q", got, want)
	}
	if n := other.Refused("MOVED") - refused; n != 1 || other.Refused("NOAUTH") != 0 {
		t.Errorf("it has said MOVED %d times, NOAUTH %d times", n, other.Refused("NOAUTH"))
	}
	if err := cluster.Client().Set(ctx, key, "x", 0).Err(); err != nil || proxy.Commands("set") != 1 {
		t.Errorf("a cluster client: %v, and %d commands came through the proxy", err, proxy.Commands("set"))
	}
	cluster.AwaitReady()
}

func TestParseNode(t *testing.T) {
	const head = "07c37d 127.0.0.1:30004@31004 "
	for _, test := range []struct {
		line string
		want string
	}{
		{head + "myself,master - 0 1426238317239 4 connected 0-9 12 [3->-67ed]",
			"{07c37d 127.0.0.1:30004 true true false true - 4 [[0 9] [12 12]]}"},
		{head + "slave,fail? e7d1ee 0 1426238317239 4 connected",
			"{07c37d 127.0.0.1:30004 false false true true e7d1ee 4 []}"},
		{head + "master,fail - 0 0 4 disconnected",
			"{07c37d 127.0.0.1:30004 false true true false - 4 []}"},
		{head + "handshake - 0 0 0 connected",
			"{07c37d 127.0.0.1:30004 false false false false - 0 []}"},
		{head + "master - 0 0", "too few fields"},
		{head + "master - 0 0 x connected", `strconv.ParseUint: parsing "x": invalid syntax`},
		{head + "master - 0 0 1 connected 1-x", `strconv.Atoi: parsing "x": invalid syntax`},
	} {
		n, err := parseNode(test.line)
		got := fmt.Sprint(n)
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s\nis %s\nwant %s", test.line, got, test.want)
		}
	}
}
