package standby_test

import (
	"context"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/local"
)

// refusing is a home that has a key in memory for good.
type refusing struct{ throttle.Home }

func (h refusing) Do(context.Context, string, throttle.Op) (throttle.Reply, error) {
	now, state := time.Now().UnixMilli(), []byte(nil)
	for range 3 {
		state, _ = tiers.Take(state, throttle.Admission{ID: throttle.NewID(), At: now})
	}
	return throttle.Reply{State: state, Now: now, Remembered: true}, nil
}

// A refusal from memory is no sign of life: a Redis that hangs is away all the same.
func TestTake_RefusedFromMemory_HangingRedisIsAway(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	n := start(t, server.URL())
	remembered := n.Limiter("remembered", throttle.New(tiers, refusing{}), n.own)
	n.admit(t, "alice", false)
	server.Pause()
	defer server.Resume()
	hammer := time.NewTicker(time.Millisecond)
	defer hammer.Stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range hammer.C {
			if v, err := remembered.Take(t.Context(), "bob"); err != nil || v.Allowed || v.Degraded {
				return // the node is alone
			}
		}
	}()
	n.awaitAlone(t)
	<-done
}

// rememberingOn is a node's limiter on Redis with a memory of refusals.
func rememberingOn(t *testing.T, n *node) (*throttle.Limiter, *cluster.Memory) {
	t.Helper()
	m := must.Get(cluster.NewMemory(n.client, prefix, 1<<20))(t)
	t.Cleanup(m.Close)
	shared := must.Get(cluster.NewWithMemory(n.client, prefix+":memory", tiers, m))(t)
	return n.Limiter("memory", shared, local.New(n.store.Table("memory"), tiers)), m
}

// What a node refunded in an outage is not refused by what it remembers of the time before.
func TestRelease_InAnOutage_MemoryDoesNotRefuse(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t, "appendonly yes", "appendfsync always")
	n := start(t, server.URL())
	l, m := rememberingOn(t, n)
	var last throttle.Admission
	for range 3 {
		last = must.Get(l.Take(t.Context(), "alice"))(t).Admission
	}
	servertest.Eventually(t, "a refusal from memory", func() bool {
		before := m.Refusals()
		return !must.Get(l.Take(t.Context(), "alice"))(t).Allowed && m.Refusals() > before
	})
	if _, known := l.Recall(t.Context(), "alice"); !known {
		t.Error("not recalled")
	}
	away(t, server, n)
	if released, err := l.Release(t.Context(), "alice", last); err != nil || !released {
		t.Fatalf("released %v, %v", released, err)
	}
	if _, known := l.Recall(t.Context(), "alice"); known {
		t.Error("recalled in the outage")
	}
	back(t, server, n)
	if v := must.Get(l.Take(t.Context(), "alice"))(t); !v.Allowed || v.Sent != 3 {
		t.Errorf("after the outage: %+v", v)
	}
}
