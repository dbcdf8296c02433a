package redistest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/servertest"
	"github.com/redis/go-redis/v9"
)

const (
	masters      = 3
	slots        = 16384
	clusterLimit = 40 * time.Second // ready in some 3 s, a failover in some 4 s, on an idle machine
	askLimit     = time.Second      // for an answer to what await asks again
	onceLimit    = 10 * time.Second // to what is asked once
)

// ClusterServers is a Redis Cluster of three masters with one replica each.
type ClusterServers struct {
	Masters  []*Server // as they were at the start; a failover changes roles, not this list
	Replicas []*Server // Replicas[i] follows Masters[i]

	t   testing.TB
	bus map[*Server]int // ports the nodes talk to one another on
	ids map[*Server]string
}

// Cluster starts one and returns when every node sees all slots covered and all
// replicas are in step. A node that is silent for 2 s counts as failed, and its
// replica takes over. Replicas stay with their masters, and one lost master
// whose replica is lost too stops the whole cluster, as by Redis's defaults.
func Cluster(t testing.TB) *ClusterServers {
	t.Helper()
	c := &ClusterServers{t: t, bus: map[*Server]int{}, ids: map[*Server]string{}}
	for range masters {
		c.Masters = append(c.Masters, c.node())
		c.Replicas = append(c.Replicas, c.node())
	}
	c.start(c.all()...)
	c.shareSlots()
	c.follow()
	c.AwaitReady()
	return c
}

// AddMaster adds a master that has no slots yet, and its replica. They come last in
// Masters and Replicas.
func (c *ClusterServers) AddMaster() *Server {
	c.t.Helper()
	master, replica := c.node(), c.node()
	c.start(master, replica)
	c.Masters, c.Replicas = append(c.Masters, master), append(c.Replicas, replica)
	c.must(replica, "CLUSTER", "REPLICATE", c.ids[master])
	c.AwaitReady()
	return master
}

// ProxyBefore puts a proxy before a master and returns when all nodes send clients there.
// Its replica is killed: it would follow its master through the proxy too, which knows
// nothing but commands and replies.
func (c *ClusterServers) ProxyBefore(master *Server) *FaultyProxy {
	c.t.Helper()
	c.ReplicaOf(master).Kill()
	proxy := Proxy(c.t, master.Addr)
	_, port, _ := net.SplitHostPort(proxy.Addr)
	c.must(master, "CONFIG", "SET", "cluster-announce-port", port)
	for _, s := range c.live() {
		servertest.Await(c.t, s.Addr+" to send clients to the proxy "+proxy.Addr, clusterLimit, func() error {
			nodes, err := askNodes(s)
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(nodes, func(n node) bool { return n.id == c.ids[master] && n.addr == proxy.Addr }) {
				return errors.New("it names another address")
			}
			return nil
		})
	}
	return proxy
}

// node prepares one. The port of the bus is one of its own, as the usual one,
// 10000 above the other, need be neither free nor a port at all.
func (c *ClusterServers) node() *Server {
	c.t.Helper()
	bus := servertest.Port(c.t)
	s := newServer(c.t, append(ordinary(),
		"cluster-enabled yes",
		"cluster-config-file nodes.conf",
		fmt.Sprintf("cluster-port %d", bus),
		"cluster-node-timeout 2000",
		"cluster-allow-replica-migration no",
		"cluster-replica-validity-factor 0", // a replica never thinks itself too old to take over
	))
	c.bus[s] = bus
	return s
}

func (c *ClusterServers) all() []*Server {
	return append(append([]*Server{}, c.Masters...), c.Replicas...)
}

// live are the nodes that run and are not paused: those that can be asked.
func (c *ClusterServers) live() []*Server {
	var live []*Server
	for _, s := range c.all() {
		if p := s.current(); p != nil && p.is(running) {
			live = append(live, s)
		}
	}
	return live
}

// start starts nodes and makes them known to those there are, and to one another. Everyone
// meets everyone, so that nobody has to wait for gossip.
func (c *ClusterServers) start(fresh ...*Server) {
	c.t.Helper()
	for _, s := range fresh {
		s.launch()
	}
	for _, s := range fresh {
		s.awaitAnswer()
	}
	for _, s := range fresh {
		met := slices.Collect(maps.Keys(c.ids))
		c.ids[s] = c.must(s, "CLUSTER", "MYID")
		c.must(s, "CLUSTER", "SET-CONFIG-EPOCH", len(c.ids)) // distinct, so that there is nothing to settle
		for _, other := range met {
			host, port, _ := net.SplitHostPort(other.Addr)
			c.must(s, "CLUSTER", "MEET", host, port, c.bus[other])
		}
	}
	for s := range c.ids {
		servertest.Await(c.t, s.Addr+" to know the other nodes of its cluster", clusterLimit, func() error {
			nodes, err := askNodes(s)
			if err != nil {
				return err
			}
			return c.allKnown(nodes)
		})
	}
}

// allKnown says which node is missing, if one is.
func (c *ClusterServers) allKnown(nodes []node) error {
	known := map[string]bool{}
	for _, n := range nodes {
		known[n.id] = n.linked
	}
	for s, id := range c.ids {
		if !known[id] {
			return fmt.Errorf("it does not know %s", s.Addr)
		}
	}
	return nil
}

func (c *ClusterServers) shareSlots() {
	c.t.Helper()
	for i, s := range c.Masters {
		first, last := i*slots/masters, (i+1)*slots/masters-1
		c.must(s, "CLUSTER", "ADDSLOTSRANGE", first, last)
	}
}

func (c *ClusterServers) follow() {
	c.t.Helper()
	for i, s := range c.Replicas {
		c.must(s, "CLUSTER", "REPLICATE", c.ids[c.Masters[i]])
	}
}

// AwaitReady returns when the nodes that run (and are not paused) agree that the
// cluster is whole: every slot has one of them for its master, and those that
// are replicas are in step. Call it after a Kill or a Pause to see a failover
// through, and after a Restart or a Resume to see the node back in its place.
func (c *ClusterServers) AwaitReady() {
	c.t.Helper()
	servertest.Await(c.t, "the cluster to be whole", clusterLimit, func() error {
		agreed := ""
		for _, s := range c.live() {
			view, err := c.viewOf(s)
			if err != nil {
				return fmt.Errorf("%s: %w", s.Addr, err)
			}
			if agreed == "" {
				agreed = view
			}
			if view != agreed {
				return fmt.Errorf("%s sees %s, others see %s", s.Addr, view, agreed)
			}
		}
		if agreed == "" {
			return errors.New("no node runs")
		}
		return nil
	})
}

// viewOf gives in one line who does what in the eyes of one node, or what is
// amiss there.
func (c *ClusterServers) viewOf(s *Server) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	info, err := s.Client().ClusterInfo(ctx).Result()
	if err != nil {
		return "", err
	}
	if !strings.Contains(info, "cluster_state:ok\r\n") {
		return "", errors.New("the state of the cluster is not ok")
	}
	nodes, err := askNodes(s)
	if err != nil {
		return "", err
	}
	if err := inStep(s); err != nil {
		return "", err
	}
	return c.describe(nodes)
}

// inStep says what is missing if s is a replica without its master's data, or a
// master with a replica still to be fed.
func inStep(s *Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	info, err := s.Client().InfoMap(ctx, "replication").Result()
	if err != nil {
		return err
	}
	about := info["Replication"]
	if about["role"] == "slave" && about["master_link_status"] != "up" {
		return errors.New("the replica is not in step with its master")
	}
	for field, replica := range about {
		if strings.HasPrefix(field, "slave") && strings.Contains(replica, "state=") &&
			!strings.Contains(replica, "state=online") {
			return errors.New("the master is still feeding its replica")
		}
	}
	return nil
}

// URL is what a program is configured with to reach the cluster; it names the
// masters of the start.
func (c *ClusterServers) URL() string {
	var addrs []string
	for _, s := range c.Masters {
		addrs = append(addrs, s.Addr)
	}
	return "redis+cluster://" + strings.Join(addrs, ",")
}

// Client is a cluster client to look with, closed with the test.
func (c *ClusterServers) Client() *redis.ClusterClient {
	var addrs []string
	for _, s := range c.all() {
		addrs = append(addrs, s.Addr)
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ContextTimeoutEnabled: true})
	c.t.Cleanup(func() { _ = client.Close() })
	return client
}

// MasterOf is the node that now answers for this key. After a Kill call
// AwaitReady first: until the failover nobody does, and the test fails.
func (c *ClusterServers) MasterOf(key string) *Server {
	c.t.Helper()
	slot := c.slotOf(key)
	var master *Server
	var newest uint64
	for _, s := range c.live() {
		nodes, err := askNodesWithin(s, onceLimit)
		if err != nil {
			continue // paused, perhaps: it answers for nothing
		}
		// Each is asked of itself alone. A master that came back may not know yet
		// that it was replaced: the later epoch is right, as Redis has it.
		for _, n := range nodes {
			if n.myself && n.owns(slot) && (master == nil || n.epoch > newest) {
				master, newest = s, n.epoch
			}
		}
	}
	if master == nil {
		c.t.Fatalf("no running master answers for slot %d", slot)
	}
	return master
}

// AnotherMaster is a master for the keys of this one to move to.
func (c *ClusterServers) AnotherMaster(than *Server) *Server {
	if c.Masters[0] == than {
		return c.Masters[1]
	}
	return c.Masters[0]
}

// ReplicaOf is the running node that follows this master.
func (c *ClusterServers) ReplicaOf(master *Server) *Server {
	c.t.Helper()
	for _, s := range c.live() {
		nodes, err := askNodesWithin(s, onceLimit)
		if err != nil {
			continue
		}
		for _, n := range nodes {
			if n.myself && n.follows == c.ids[master] {
				return s
			}
		}
	}
	c.t.Fatalf("no running node is a replica of %s", master.Addr)
	return nil
}

// AwaitPromotion waits until a replica says itself that it has become a master.
func (c *ClusterServers) AwaitPromotion(replica *Server) {
	c.t.Helper()
	servertest.Await(c.t, "the promotion of "+replica.Addr, 30*time.Second, func() error {
		nodes, err := askNodes(replica)
		for _, n := range nodes {
			if n.myself && n.follows != "-" {
				err = fmt.Errorf("it still follows %s", n.follows)
			}
		}
		return err
	})
}

// must carries a command out at one node, or fails the test.
func (c *ClusterServers) must(s *Server, command ...any) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	answer, err := s.Client().Do(ctx, command...).Result()
	if err != nil {
		c.t.Fatalf("the cluster's node %s refuses %v: %v", s.Addr, command, err)
	}
	return fmt.Sprint(answer)
}
