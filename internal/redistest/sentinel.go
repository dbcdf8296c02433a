package redistest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/servertest"
)

const masterName = "mymaster"

// SentinelServers is a master and its replica, watched by three sentinels of which two must
// agree to replace the master. They call it "mymaster".
type SentinelServers struct {
	Master    *Server // Failover makes these two swap roles
	Replica   *Server
	Sentinels []*Server

	t testing.TB
}

// Sentinel starts one and returns when the replica is in sync and the sentinels know it and
// one another. A master that is silent for 1 s counts as down.
func Sentinel(t testing.TB) *SentinelServers {
	t.Helper()
	master := Alone(t)
	host, port, _ := net.SplitHostPort(master.Addr)
	s := &SentinelServers{Master: master, Replica: Alone(t, "replicaof "+host+" "+port), t: t}
	s.AwaitReplica()
	for range 3 {
		sentinel := newServer(t, []string{
			fmt.Sprintf("sentinel monitor %s %s %s 2", masterName, host, port),
			"sentinel down-after-milliseconds " + masterName + " 1000",
			"sentinel failover-timeout " + masterName + " 3000",
		}, "--sentinel")
		sentinel.Restart()
		sentinel.must("SENTINEL", "DEBUG", "PUBLISH-PERIOD", 250, "INFO-PERIOD", 500) // else 2 s and 10 s
		s.Sentinels = append(s.Sentinels, sentinel)
	}
	for _, sentinel := range s.Sentinels {
		servertest.Await(t, "the sentinel "+sentinel.Addr+" to know the others", clusterLimit, func() error {
			text := sentinel.Info("sentinel", "master0")
			if !strings.HasSuffix(text, "slaves=1,sentinels=3") {
				return fmt.Errorf("it knows %s", text)
			}
			return nil
		})
	}
	return s
}

// AwaitReplica returns when the replica follows the master and is in sync.
func (s *SentinelServers) AwaitReplica() {
	s.t.Helper()
	servertest.Await(s.t, s.Replica.Addr+" to become a replica in sync", clusterLimit, func() error {
		if role := s.Replica.Info("replication", "role"); role != "slave" {
			return fmt.Errorf("it is a %s", role)
		}
		if s.Master.Info("replication", "connected_slaves") != "1" {
			return fmt.Errorf("%s has no replica", s.Master.Addr)
		}
		if err := s.Master.inSync(); err != nil {
			return err
		}
		return s.Replica.inSync()
	})
}

// URL returns what a program is configured with to find the master.
func (s *SentinelServers) URL() string {
	return "redis+sentinel://" + strings.Join(addrs(s.Sentinels), ",") + "/" + masterName
}

// Failover kills the master and returns the new one when it takes writes and every sentinel
// names it. The dead one is then s.Replica.
func (s *SentinelServers) Failover() *Server {
	s.t.Helper()
	s.Master.Kill()
	s.Master, s.Replica = s.Replica, s.Master
	servertest.Await(s.t, s.Master.Addr+" to become the master", clusterLimit, func() error {
		for _, sentinel := range s.Sentinels {
			ctx, cancel := context.WithTimeout(context.Background(), askLimit)
			addr, err := sentinel.client.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName).StringSlice()
			cancel()
			if err != nil || strings.Join(addr, ":") != s.Master.Addr {
				return fmt.Errorf("a sentinel names %s, %v", addr, err)
			}
		}
		if role := s.Master.Info("replication", "role"); role != "master" {
			return fmt.Errorf("it is a %s", role)
		}
		return nil
	})
	return s.Master
}
