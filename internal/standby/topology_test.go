package standby_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle"
)

// keyOn returns a key whose records are on the server.
func keyOn(t *testing.T, servers *redistest.ClusterServers, s *redistest.Server) string {
	t.Helper()
	for i := range 1000 {
		if key := fmt.Sprint("key", i); servers.MasterOf("{"+key+"}") == s {
			return key
		}
	}
	t.Fatal("no key is on the server")
	return ""
}

// goAlone takes until the node decides alone, and returns that send.
func (n *node) goAlone(t *testing.T, key string) (a throttle.Admission) {
	t.Helper()
	servertest.Eventually(t, "the key to be decided alone", func() bool {
		a.ID = throttle.NewID()
		v, err := n.mailbox.TakeID(context.Background(), key, a.ID)
		a.At = v.At
		return err == nil && v.Degraded && v.Allowed
	})
	return a
}

func TestCluster_OneMasterAway_OthersDecideForAll(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t)
	for i := range servers.Masters {
		servers.Replicas[i].Kill() // no failover
		must.OK(t, servers.Masters[i].Client().ConfigSet(t.Context(), "cluster-require-full-coverage", "no").Err())
	}
	n, idle := start(t, servers.URL()), start(t, servers.URL())
	lost, well := keyOn(t, servers, servers.Masters[0]), keyOn(t, servers, servers.Masters[1])
	n.admit(t, lost, false)
	n.admit(t, well, false)
	servers.Masters[0].Kill()
	alone := n.goAlone(t, lost)
	n.admit(t, well, false)
	if s := n.State(); s.Away == 0 || s.Journal == 0 {
		t.Errorf("in the outage: %+v", s)
	}
	servertest.Eventually(t, "a node without calls to find the master away", func() bool {
		return idle.Ready(context.Background()) == nil && idle.State().Away == 1
	})
	servers.Masters[0].Restart()
	n.awaitHealthy(t)
	if !onRecord(t, n.client, lost, alone.ID) {
		t.Error("Redis was not told of a send that was admitted alone")
	}
}

// A node that starts while all masters are away continues alone, though it does not know them yet.
func TestCluster_StartedInOutage_ContinuesAlone(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t)
	for i := range servers.Masters {
		servers.Replicas[i].Kill()
		servers.Masters[i].Kill()
	}
	n := start(t, servers.URL())
	n.awaitAlone(t)
	n.admit(t, "alice", true)
	for _, s := range servers.Masters {
		s.Restart()
	}
	n.awaitHealthy(t)
	servertest.Eventually(t, "the cluster to decide", func() bool {
		v, err := n.mailbox.Peek(context.Background(), "alice")
		return err == nil && !v.Degraded && v.Sent == 1
	})
}
