package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/redis/go-redis/v9"
)

const (
	masters      = 3
	slots        = 16384
	clusterLimit = 60 * time.Second // 3 s on an idle machine, as a failover
)

// ClusterServers is a Redis Cluster of three masters with one replica each.
type ClusterServers struct {
	Masters  []*Server // as they were at the start; a failover changes roles, not this list
	Replicas []*Server // Replicas[i] follows Masters[i]

	t   testing.TB
	ids map[*Server]string
}

// Cluster starts one and returns when all is in sync. A node that is silent for 2 s counts
// as failed, and its replica takes over.
func Cluster(t testing.TB) *ClusterServers {
	t.Helper()
	c := &ClusterServers{t: t, ids: map[*Server]string{}}
	bus := map[*Server]int{}
	for i := range 2 * masters {
		// The usual port of the bus, 10000 above the other, may be taken.
		port := servertest.Port(t)
		s := Alone(t, "cluster-enabled yes", fmt.Sprintf("cluster-port %d", port), "cluster-node-timeout 2000",
			"cluster-allow-replica-migration no", "cluster-replica-validity-factor 0")
		bus[s], c.ids[s] = port, s.must("CLUSTER", "MYID")
		s.must("CLUSTER", "SET-CONFIG-EPOCH", i+1)
		for _, other := range c.all() { // each meets each, which needs no gossip
			host, port, _ := net.SplitHostPort(other.Addr)
			s.must("CLUSTER", "MEET", host, port, bus[other])
		}
		if i < masters {
			s.must("CLUSTER", "ADDSLOTSRANGE", i*slots/masters, (i+1)*slots/masters-1)
			c.Masters = append(c.Masters, s)
		} else {
			c.Replicas = append(c.Replicas, s)
		}
	}
	for i, s := range c.Replicas {
		master := c.Masters[i]
		servertest.Await(t, s.Addr+" to know its master", clusterLimit, func() error {
			return s.client.Do(context.Background(), "CLUSTER", "REPLICATE", c.ids[master]).Err()
		})
	}
	c.AwaitReady()
	return c
}

func (c *ClusterServers) all() []*Server { return slices.Concat(c.Masters, c.Replicas) }

// AwaitReady returns when the nodes that run, and are not paused, agree on one of them as the
// master of each slot, and the replicas are in sync. Call it after a Kill or a Pause to see a
// failover through.
func (c *ClusterServers) AwaitReady() {
	c.t.Helper()
	servertest.Await(c.t, "the cluster to be whole", clusterLimit, func() error {
		agreed := ""
		for _, s := range c.all() {
			if !s.live() {
				continue
			}
			view, err := c.view(s)
			if err == nil {
				err = s.inSync()
			}
			if err != nil {
				return fmt.Errorf("%s: %w", s.Addr, err)
			}
			if agreed != "" && view != agreed {
				return fmt.Errorf("%s sees %s, others see %s", s.Addr, view, agreed)
			}
			agreed = view
		}
		return nil
	})
}

// slotsOf asks a node for the masters and their slots.
func slotsOf(ctx context.Context, s *Server) ([]redis.ClusterSlot, error) {
	return s.client.ClusterSlots(ctx).Result() //lint:ignore SA1019 its successor is not in Redis 6
}

// view returns which master has which slots, as one node sees it.
func (c *ClusterServers) view(s *Server) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	info, err := s.client.ClusterInfo(ctx).Result()
	if err != nil {
		return "", err
	}
	if infoField(info, "cluster_state") != "ok" || infoField(info, "cluster_known_nodes") != fmt.Sprint(len(c.ids)) {
		return "", errors.New("it does not see the cluster whole")
	}
	ranges, err := slotsOf(ctx, s)
	if err != nil {
		return "", err
	}
	var view []string
	for _, r := range ranges {
		if owner := c.at(r.Nodes[0].Addr); owner == nil || !owner.live() {
			return "", fmt.Errorf("%s does not run and has slots", r.Nodes[0].Addr)
		}
		view = append(view, fmt.Sprint(r.Start, "-", r.End, "@", r.Nodes[0].Addr))
	}
	slices.Sort(view)
	return strings.Join(view, " "), nil
}

func (c *ClusterServers) at(addr string) *Server {
	for _, s := range c.all() {
		if s.Addr == addr {
			return s
		}
	}
	return nil
}

func addrs(servers []*Server) (all []string) {
	for _, s := range servers {
		all = append(all, s.Addr)
	}
	return all
}

// URL returns what a program is configured with to reach the cluster.
func (c *ClusterServers) URL() string {
	return "redis+cluster://" + c.Masters[0].Addr + "?" + url.Values{"addr": addrs(c.Masters[1:])}.Encode()
}

// Client returns a plain client of the cluster, closed with the test.
func (c *ClusterServers) Client() *redis.ClusterClient {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs(c.all()), ContextTimeoutEnabled: true})
	c.t.Cleanup(func() { _ = client.Close() })
	return client
}

// MasterOf returns the node that answers for a key, in the eyes of the nodes that run.
func (c *ClusterServers) MasterOf(key string) *Server {
	c.t.Helper()
	one := c.all()[slices.IndexFunc(c.all(), (*Server).live)]
	slot := c.slotOf(one, key)
	ranges, err := slotsOf(context.Background(), one)
	for _, r := range ranges {
		if r.Start <= slot && slot <= r.End {
			return c.at(r.Nodes[0].Addr)
		}
	}
	c.t.Fatalf("%s knows no master of slot %d: %v", one.Addr, slot, err)
	return nil
}

// Another is a master other than this one.
func (c *ClusterServers) Another(master *Server) *Server {
	if master == c.Masters[0] {
		return c.Masters[1]
	}
	return c.Masters[0]
}

func (c *ClusterServers) slotOf(s *Server, key string) int {
	c.t.Helper()
	slot, err := strconv.Atoi(s.must("CLUSTER", "KEYSLOT", key))
	if err != nil {
		c.t.Fatal(err)
	}
	return slot
}

// A slot moves from one master to another in three steps, and a test can act between any two.

// BeginMigration announces that the slot of this key moves: from then on its master answers for
// keys that it has, and with ASK for those that it has not.
func (c *ClusterServers) BeginMigration(key string, from, to *Server) {
	c.t.Helper()
	slot := c.slotOf(from, key)
	to.must("CLUSTER", "SETSLOT", slot, "IMPORTING", c.ids[from])
	from.must("CLUSTER", "SETSLOT", slot, "MIGRATING", c.ids[to])
}

// MoveKeys moves all keys of the slot. One that expires meanwhile is not moved.
func (c *ClusterServers) MoveKeys(key string, from, to *Server) {
	c.t.Helper()
	slot := c.slotOf(from, key)
	host, port, _ := net.SplitHostPort(to.Addr)
	for {
		keys, err := from.client.ClusterGetKeysInSlot(context.Background(), slot, 100).Result()
		if err != nil {
			c.t.Fatal(err)
		}
		if len(keys) == 0 {
			return
		}
		for _, one := range keys {
			from.must("MIGRATE", host, port, one, 0, 5000)
		}
	}
}

// FinishMigration gives the slot to its new master, and returns when all nodes know.
func (c *ClusterServers) FinishMigration(key string, from, to *Server) {
	c.t.Helper()
	for _, s := range []*Server{to, from} { // else no node has the slot for a moment
		s.must("CLUSTER", "SETSLOT", c.slotOf(s, key), "NODE", c.ids[to])
	}
	c.AwaitReady()
}
