package redistest

import (
	"errors"
	"fmt"
	"net"

	"github.com/mailgate/mailgate/servertest"
)

// A slot moves from one master to another in three steps, and a test can look
// or act between any two of them:
//
//	cluster.BeginMigration(key, from, to)
//	// from answers for the keys it has, and with ASK for those it has not
//	cluster.MoveKey(key, from, to)
//	// the key is at to, which lets nobody at it who does not say ASKING first
//	cluster.FinishMigration(key, from, to)
//	// everybody knows: from answers MOVED

// BeginMigration announces at both masters that the slot of this key is moving.
func (c *ClusterServers) BeginMigration(key string, from, to *Server) {
	c.t.Helper()
	slot := c.slotOf(key)
	c.must(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", c.ids[from])
	c.must(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", c.ids[to])
}

// MoveKey moves one key of a slot that is moving. The key must exist.
func (c *ClusterServers) MoveKey(key string, from, to *Server) {
	c.t.Helper()
	host, port, _ := net.SplitHostPort(to.Addr)
	if answer := c.must(from, "MIGRATE", host, port, key, 0, 5000); answer != "OK" {
		c.t.Fatalf("the key to move from %s is not there: MIGRATE says %s", from.Addr, answer)
	}
}

// FinishMigration gives the slot to its new master and returns when all running
// nodes know. No key of the slot may be left behind.
func (c *ClusterServers) FinishMigration(key string, from, to *Server) {
	c.t.Helper()
	slot := c.slotOf(key)
	if left := c.must(from, "CLUSTER", "COUNTKEYSINSLOT", slot); left != "0" {
		c.t.Fatalf("cannot finish moving slot %d: %s keys of it are still at %s", slot, left, from.Addr)
	}
	// The new master first: were the old one to let go before, the slot would be
	// nobody's for a moment.
	for _, s := range []*Server{to, from} {
		c.must(s, "CLUSTER", "SETSLOT", slot, "NODE", c.ids[to])
	}
	for _, s := range c.live() {
		servertest.Await(c.t, fmt.Sprintf("%s to know where slot %d went", s.Addr, slot), clusterLimit, func() error {
			return knowsOwner(s, slot, c.ids[to])
		})
	}
}

func knowsOwner(s *Server, slot int, id string) error {
	nodes, err := askNodes(s)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if n.owns(slot) && n.id == id {
			return nil
		}
	}
	return errors.New("it still thinks otherwise")
}
