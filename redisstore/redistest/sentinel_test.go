package redistest

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/servertest"
	"github.com/redis/go-redis/v9"
)

func TestSentinel(t *testing.T) {
	t.Parallel() // it is mostly waiting
	start := time.Now()
	servers := Sentinel(t)
	t.Logf("ready after %v", time.Since(start))
	client := sentinelClient(t, servers.URL())
	ctx := deadline(t, 2*time.Minute)
	_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Set(ctx, "key", "kept", 0)
		pipe.Do(ctx, "WAIT", 1, 5000)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 2 { // there, and back again
		old, replica := servers.Master, servers.Replica
		if got := old.Client().Get(ctx, "key").Val(); got != "kept" {
			t.Fatalf("round %d: the master holds %q", round, got)
		}
		start = time.Now()
		if got := servers.Failover(); got != replica || servers.Master != replica || servers.Replica != old {
			t.Fatalf("round %d: the master is now %s, want the replica %s", round, got.Addr, replica.Addr)
		}
		t.Logf("failover after %v", time.Since(start))
		if err := replica.Client().Incr(ctx, "writes").Err(); err != nil {
			t.Errorf("round %d: the new master takes no writes: %v", round, err)
		}
		servertest.Await(t, "the client to follow", 20*time.Second, func() error { return client.Incr(ctx, "writes").Err() })
		if old.Running() {
			t.Errorf("round %d: the old master was not killed", round)
		}
		old.Restart()
		start = time.Now()
		servers.AwaitReplica()
		t.Logf("the old master follows after %v", time.Since(start))
		if got, want := old.Client().DBSize(ctx).Val(), int64(2); got != want {
			t.Errorf("round %d: the new replica has %d keys, want %d", round, got, want)
		}
	}
}

// sentinelClient reads the URL as a user's program would.
func sentinelClient(t *testing.T, from string) *redis.Client {
	t.Helper()
	address, err := url.Parse(from)
	if err != nil || address.Scheme != "redis+sentinel" || strings.Count(address.Host, ",") != 2 {
		t.Fatalf("URL is %s, %v", from, err)
	}
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName:    strings.TrimPrefix(address.Path, "/"),
		SentinelAddrs: strings.Split(address.Host, ","),
	})
	t.Cleanup(func() { _ = client.Close() })
	return client
}
