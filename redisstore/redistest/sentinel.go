package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/servertest"
)

const (
	masterName    = "mymaster"
	sentinelLimit = 40 * time.Second // ready in half a second, a failover in 3 s, on an idle machine
)

// SentinelServers is a master and its replica, watched by three sentinels of
// which two must agree to replace the master. They call it "mymaster".
type SentinelServers struct {
	Master    *Server // Failover makes these two change places
	Replica   *Server
	Sentinels []*Server

	t testing.TB
}

// Sentinel starts one and returns when the replica is in step and all sentinels
// know it and one another. A master silent for 1 s counts as down.
func Sentinel(t testing.TB) *SentinelServers {
	t.Helper()
	master := Alone(t)
	host, port, _ := net.SplitHostPort(master.Addr)
	s := &SentinelServers{
		Master:  master,
		Replica: Alone(t, "replicaof "+host+" "+port),
		t:       t,
	}
	servertest.Await(t, "the replica to be in step", sentinelLimit, s.replicaInStep)
	for range 3 {
		s.Sentinels = append(s.Sentinels, newServer(t, []string{
			fmt.Sprintf("sentinel monitor %s %s %s 2", masterName, host, port),
			"sentinel down-after-milliseconds " + masterName + " 1000",
			"sentinel failover-timeout " + masterName + " 3000", // a failed try is repeated after twice this
		}, "--sentinel"))
	}
	for _, sentinel := range s.Sentinels {
		sentinel.launch()
	}
	for _, sentinel := range s.Sentinels {
		sentinel.awaitAnswer()
		s.hurry(sentinel)
	}
	for _, sentinel := range s.Sentinels {
		servertest.Await(t, "the sentinel "+sentinel.Addr+" to know everybody", sentinelLimit, func() error {
			return knowsEverybody(sentinel)
		})
	}
	return s
}

// hurry makes a sentinel tell of itself and ask about others more often than it
// does by itself (2 s and 10 s), so that servers are found, and put in their
// place after a failover, in a second and not in ten. It is forgotten at a
// sentinel's end; after its Restart things only take longer.
func (s *SentinelServers) hurry(sentinel *Server) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), sentinelLimit)
	defer cancel()
	err := sentinel.Client().Do(ctx, "SENTINEL", "DEBUG", "PUBLISH-PERIOD", 250, "INFO-PERIOD", 500).Err()
	if err != nil {
		s.t.Fatalf("the sentinel %s cannot be hurried: %v", sentinel.Addr, err)
	}
}

// replicaInStep asks both: the master lists the replica as online when the whole
// copy has been sent, and the replica knows when it has taken it in.
func (s *SentinelServers) replicaInStep() error {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	info, err := s.Master.Client().Info(ctx, "replication").Result()
	if err != nil {
		return err
	}
	if !strings.Contains(info, "state=online") {
		return errors.New("it is not")
	}
	return inStep(s.Replica)
}

func knowsEverybody(sentinel *Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	master, err := sentinel.Client().Do(ctx, "SENTINEL", "MASTER", masterName).Result()
	if err != nil {
		return err
	}
	for field, want := range map[string]string{"flags": "master", "num-slaves": "1", "num-other-sentinels": "2"} {
		if got := fieldOf(master, field); got != want {
			return fmt.Errorf("its %s is %q, not %q", field, got, want)
		}
	}
	return nil
}

// fieldOf reads a field of an answer that is a map in RESP3 and a list of names
// and values in RESP2.
func fieldOf(answer any, field string) string {
	switch fields := answer.(type) {
	case map[any]any:
		return fmt.Sprint(fields[field])
	case []any:
		for i := 0; i+1 < len(fields); i += 2 {
			if fields[i] == field {
				return fmt.Sprint(fields[i+1])
			}
		}
	}
	return ""
}

// URL is what a program is configured with to find the master.
func (s *SentinelServers) URL() string {
	var addrs []string
	for _, sentinel := range s.Sentinels {
		addrs = append(addrs, sentinel.Addr)
	}
	return "redis+sentinel://" + strings.Join(addrs, ",") + "/" + masterName
}

// Failover kills the master and returns the new one when it takes writes and
// every sentinel names it. The dead one is then s.Replica. After its Restart it
// still thinks itself the master, and takes writes that will be lost, until the
// sentinels tell it otherwise about a second later; AwaitReplica waits for that.
func (s *SentinelServers) Failover() *Server {
	s.t.Helper()
	s.Master.Kill()
	s.Master, s.Replica = s.Replica, s.Master
	servertest.Await(s.t, s.Master.Addr+" to become the master", sentinelLimit, func() error {
		for _, sentinel := range s.Sentinels {
			if err := names(sentinel, s.Master); err != nil {
				return err
			}
		}
		return isMaster(s.Master)
	})
	return s.Master
}

// AwaitReplica returns when the replica follows the master and is in step.
func (s *SentinelServers) AwaitReplica() {
	s.t.Helper()
	servertest.Await(s.t, s.Replica.Addr+" to become a replica in step", sentinelLimit, s.replicaInStep)
}

func names(sentinel, master *Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	addr, err := sentinel.Client().Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName).StringSlice()
	if err != nil {
		return err
	}
	if got := strings.Join(addr, ":"); got != master.Addr {
		return fmt.Errorf("the sentinel %s still names %s", sentinel.Addr, got)
	}
	return nil
}

func isMaster(s *Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	role, err := s.Client().Do(ctx, "ROLE").Slice()
	if err != nil {
		return err
	}
	if role[0] != "master" {
		return fmt.Errorf("it is still a %v", role[0])
	}
	return nil
}
