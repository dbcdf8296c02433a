package standby_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/redis/go-redis/v9"
)

// startCluster starts three masters that share the slots.
func startCluster(t *testing.T) (servers []*redistest.Server) {
	t.Helper()
	for range 3 {
		servers = append(servers, redistest.Alone(t, "cluster-enabled yes", "cluster-require-full-coverage no",
			"cluster-node-timeout 2000", "appendonly yes", "appendfsync always"))
	}
	for i, s := range servers {
		first, last := 16384*i/3, 16384*(i+1)/3-1
		if err := s.Client().ClusterAddSlotsRange(t.Context(), first, last).Err(); err != nil {
			t.Fatal(err)
		}
		host, port, _ := strings.Cut(s.Addr, ":")
		if err := servers[0].Client().ClusterMeet(t.Context(), host, port).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range servers {
		servertest.Await(t, "the cluster", time.Minute, func() error {
			info, err := s.Client().ClusterInfo(context.Background()).Result()
			if err == nil && (!strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_slots_ok:16384")) {
				err = fmt.Errorf("not yet: %s", info)
			}
			return err
		})
	}
	return servers
}

func clusterNode(t *testing.T, dir string, servers []*redistest.Server) *node {
	t.Helper()
	return open(t, dir, func(n *node) redis.UniversalClient {
		o := n.options("")
		c := &redis.ClusterOptions{
			MaxRedirects: 2, DialerRetries: 1, ContextTimeoutEnabled: true, Dialer: o.Dialer,
			DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout,
		}
		for _, s := range servers {
			c.Addrs = append(c.Addrs, s.Addr)
		}
		return redis.NewClusterClient(c)
	})
}

// keyOn returns a key whose records are on the server.
func keyOn(t *testing.T, n *node, s *redistest.Server) string {
	t.Helper()
	for i := range 1000 {
		key := fmt.Sprint("key", i)
		m, err := n.client.(*redis.ClusterClient).MasterForKey(context.Background(), "{"+key+"}")
		if err != nil {
			t.Fatal(err)
		}
		if m.Options().Addr == s.Addr {
			return key
		}
	}
	t.Fatal("no key is on the server")
	return ""
}

func TestCluster_OneMasterAway_OthersDecideForAll(t *testing.T) {
	servers := startCluster(t)
	dir := t.TempDir()
	n := clusterNode(t, dir, servers)
	n.Start()
	lost, well := keyOn(t, n, servers[0]), keyOn(t, n, servers[1])
	n.admit(t, lost, false)
	n.admit(t, well, false)
	servers[0].Kill()
	servertest.Eventually(t, "the lost master's keys to be decided alone", func() bool {
		v, err := n.mailbox.Take(context.Background(), lost, throttle.NewID())
		return err == nil && v.Degraded
	})
	n.admit(t, well, false)
	if s := n.State(); !s.Alone || s.Journal == 0 {
		t.Errorf("in the outage: %+v", s)
	}
	servers[0].Restart(t)
	n.awaitHealthy(t)
	got := history(t, n.client, lost)
	if len(got) < 2 {
		t.Errorf("Redis has %d sends, want the one before and those alone", len(got))
	}
}

// A node that starts while all masters are away goes on alone, though it does not know them yet.
func TestCluster_StartedInOutage_GoesOnAlone(t *testing.T) {
	servers := startCluster(t)
	for _, s := range servers {
		s.Kill()
	}
	n := clusterNode(t, t.TempDir(), servers)
	n.Start()
	n.awaitAlone(t)
	n.admit(t, "alice", true)
	for _, s := range servers {
		s.Restart(t)
	}
	n.awaitHealthy(t)
	servertest.Eventually(t, "the cluster to decide", func() bool {
		v, err := n.mailbox.Peek(context.Background(), "alice")
		return err == nil && !v.Degraded && v.Sent == 1
	})
}

// startSentinel starts a master, a replica of it and a sentinel that fails over to that.
func startSentinel(t *testing.T) (master *redistest.Server, sentinel string) {
	t.Helper()
	master = redistest.Alone(t)
	host, port, _ := strings.Cut(master.Addr, ":")
	replica := redistest.Alone(t, "replicaof "+host+" "+port)
	if err := master.Client().Set(t.Context(), "ready", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	servertest.Await(t, "the replica", time.Minute, func() error { return replica.Client().Get(context.Background(), "ready").Err() })
	file, sentinelPort := filepath.Join(t.TempDir(), "sentinel.conf"), servertest.Port(t)
	text := fmt.Sprintf("bind 127.0.0.1\nport %d\ndir %s\nlogfile sentinel.log\nsentinel monitor mymaster %s %s 1\n"+
		"sentinel down-after-milliseconds mymaster 500\nsentinel failover-timeout mymaster 3000\n", sentinelPort, filepath.Dir(file), host, port)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	process := exec.Command("redis-server", file, "--sentinel")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Process.Kill(); _ = process.Wait() })
	sentinel = fmt.Sprintf("127.0.0.1:%d", sentinelPort)
	client := redis.NewSentinelClient(&redis.Options{Addr: sentinel})
	defer func() { _ = client.Close() }()
	servertest.Await(t, "the sentinel to know the replica", time.Minute, func() error {
		replicas, err := client.Replicas(context.Background(), "mymaster").Result()
		if err == nil && len(replicas) == 0 {
			err = fmt.Errorf("none yet")
		}
		return err
	})
	return master, sentinel
}

// The time between two masters is an outage; the second one is told of it.
func TestSentinel_Failover_SecondMasterIsTold(t *testing.T) {
	master, sentinel := startSentinel(t)
	n := open(t, t.TempDir(), func(n *node) redis.UniversalClient {
		o := n.options("")
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: "mymaster", SentinelAddrs: []string{sentinel}, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
			DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout,
		})
	})
	n.Start()
	n.admit(t, "alice", false)
	master.Kill()
	n.awaitAlone(t)
	during := n.admit(t, "alice", true)
	n.awaitHealthy(t)
	if got := history(t, n.client, "alice"); got.Find(during.ID) < 0 {
		t.Errorf("the second master has %v, not what was admitted alone", got)
	}
	if v, err := n.mailbox.Peek(t.Context(), "alice"); err != nil || v.Degraded {
		t.Errorf("after the failover: alone %v, %v", v.Degraded, err)
	}
}
