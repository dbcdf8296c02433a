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

	"github.com/mailgate/mailgate/internal/servertest"
)

const masterName = "mymaster"

// SentinelServers is a master and its replicas, watched by three sentinels of which two must
// agree to replace the master. They call it "mymaster".
type SentinelServers struct {
	Master    *Server // AwaitPromotion makes it and a replica swap roles
	Replicas  []*Server
	Sentinels []*Server

	t testing.TB
}

// Sentinel starts one and returns when the replicas are in sync and the sentinels know them and
// one another. A master that is silent for 1 s counts as down.
func Sentinel(t testing.TB, replicas int) *SentinelServers {
	t.Helper()
	master := Alone(t)
	host, port, _ := net.SplitHostPort(master.Addr)
	s := &SentinelServers{Master: master, t: t}
	for range replicas {
		s.Replicas = append(s.Replicas, Alone(t, "replicaof "+host+" "+port))
	}
	s.AwaitReplicas()
	for range 3 {
		sentinel := newServer(t, []string{
			fmt.Sprintf("sentinel monitor %s %s %s 2", masterName, host, port),
			"sentinel down-after-milliseconds " + masterName + " 1000",
			"sentinel failover-timeout " + masterName + " 3000",
		}, "--sentinel")
		sentinel.Restart()
		// By default 1 s, 2 s and 10 s. With one PING in down-after-milliseconds, a broken connection alone counts as a dead
		// master.
		sentinel.must("SENTINEL", "DEBUG", "PING-PERIOD", 200, "PUBLISH-PERIOD", 250, "INFO-PERIOD", 500)
		s.Sentinels = append(s.Sentinels, sentinel)
	}
	for _, sentinel := range s.Sentinels {
		servertest.Await(t, "the sentinel "+sentinel.Addr+" to know the others", clusterLimit, func() error {
			text := sentinel.Info("sentinel", "master0")
			if !strings.HasSuffix(text, fmt.Sprintf("slaves=%d,sentinels=3", replicas)) {
				return fmt.Errorf("it knows %s", text)
			}
			return nil
		})
	}
	return s
}

// AwaitReplicas returns when the replicas follow the master and are in sync.
func (s *SentinelServers) AwaitReplicas() {
	s.t.Helper()
	servertest.Await(s.t, s.Master.Addr+" to have its replicas in sync", clusterLimit, func() error {
		if has := s.Master.Info("replication", "connected_slaves"); has != strconv.Itoa(len(s.Replicas)) {
			return fmt.Errorf("it has %s", has)
		}
		for _, replica := range s.Replicas {
			if role := replica.Info("replication", "role"); role != "slave" {
				return fmt.Errorf("%s is a %s", replica.Addr, role)
			}
			if err := replica.inSync(); err != nil {
				return err
			}
		}
		return s.Master.inSync()
	})
}

// URL returns what a program is configured with to find the master.
func (s *SentinelServers) URL() string {
	return "redis+sentinel://" + s.Sentinels[0].Addr + "?" + url.Values{"master_name": {masterName}, "addr": addrs(s.Sentinels[1:])}.Encode()
}

// Failover kills the master and returns the new one when it takes writes and every sentinel
// names it. The dead one is then a replica.
func (s *SentinelServers) Failover() *Server {
	s.t.Helper()
	s.Master.Kill()
	return s.AwaitPromotion()
}

// AwaitDown returns when a sentinel has begun to replace the master.
func (s *SentinelServers) AwaitDown() {
	s.t.Helper()
	servertest.Await(s.t, "a failover to begin", clusterLimit, func() error {
		for _, sentinel := range s.Sentinels {
			if flags := sentinel.must("SENTINEL", "MASTER", masterName); strings.Contains(flags, "failover_in_progress") {
				return nil
			}
		}
		return errors.New("it has not begun")
	})
}

// AwaitPromotion returns the new master when it takes writes and every sentinel names it. The one
// before is then a replica.
func (s *SentinelServers) AwaitPromotion() *Server {
	s.t.Helper()
	servertest.Await(s.t, "a replica to become the master", clusterLimit, func() error {
		named := -1
		for _, sentinel := range s.Sentinels {
			ctx, cancel := context.WithTimeout(context.Background(), askLimit)
			addr, err := sentinel.client.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName).StringSlice()
			cancel()
			found := slices.IndexFunc(s.Replicas, func(r *Server) bool { return r.Addr == strings.Join(addr, ":") })
			if err != nil || found < 0 || named >= 0 && found != named {
				return fmt.Errorf("a sentinel names %s, %v", addr, err)
			}
			named = found
		}
		if role := s.Replicas[named].Info("replication", "role"); role != "master" {
			return fmt.Errorf("it is a %s", role)
		}
		s.Master, s.Replicas[named] = s.Replicas[named], s.Master
		return nil
	})
	return s.Master
}
