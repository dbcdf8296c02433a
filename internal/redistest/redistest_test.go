package redistest

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestServer_KilledPausedRestarted_AnswersWhenItRuns(t *testing.T) {
	s := Durable(t)
	ctx := context.Background()
	s.must("SET", "a", 1)
	s.Kill()
	if s.running() || s.Client().Ping(ctx).Err() == nil {
		t.Error("a killed server answers")
	}
	s.Restart()
	if got := s.must("GET", "a"); got != "1" {
		t.Errorf("after the restart a is %s", got)
	}
	s.Pause()
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if s.Client().Ping(short).Err() == nil {
		t.Error("a paused server answers")
	}
	s.Resume()
	s.must("PING")
}

func TestProxy_LosesAReply_CommandWasCarriedOut(t *testing.T) {
	s := Alone(t)
	p := Proxy(t, s.Addr)
	client := redis.NewClient(&redis.Options{Addr: p.Addr, MaxRetries: -1, ReadTimeout: 100 * time.Millisecond})
	defer client.Close()
	ctx := context.Background()
	p.CutReplies(1, "incr")
	if err := client.Incr(ctx, "a").Err(); err == nil {
		t.Error("the reply was not lost")
	}
	if n, err := client.Incr(ctx, "a").Result(); n != 2 || err != nil || p.Sent("INCR") != 2 {
		t.Errorf("%d, %v", n, err)
	}
	p.Swallow()
	if client.Incr(ctx, "a").Err() == nil {
		t.Error("a silent network answers")
	}
	p.Pass()
	if n, err := client.Incr(ctx, "a").Result(); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	p.Refuse()
	if client.Ping(ctx).Err() == nil {
		t.Error("a refused connection answers")
	}
}

func TestCluster_MasterKilledAndSlotMoved_ClientFollows(t *testing.T) {
	c := Cluster(t)
	ctx, client := context.Background(), c.Client()
	if err := client.Set(ctx, "a", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	from := c.MasterOf("a")
	to := c.Another(from)
	c.BeginMigration("a", from, to)
	c.MoveKeys("a", from, to)
	c.FinishMigration("a", from, to)
	if c.MasterOf("a") != to {
		t.Error("the slot did not move")
	}
	to.Kill()
	c.AwaitReady()
	if got := Healed(t, func() (string, error) { return client.Get(ctx, "a").Result() }); got != "1" {
		t.Errorf("a is %q", got)
	}
}

func TestSentinel_Failover_ReplicaTakesOver(t *testing.T) {
	s := Sentinel(t, 1)
	s.Master.must("SET", "a", 1)
	old := s.Master
	if s.Failover() == old || s.Replicas[0] != old {
		t.Error("the servers did not swap roles")
	}
	s.Replicas[0].Restart()
	s.AwaitReplicas()
}
