package standby_test

import (
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/local"
)

// rememberingOn is a node's limiter with a memory of refusals.
func rememberingOn(t *testing.T, n *node) (*throttle.Limiter, *cluster.Memory) {
	t.Helper()
	m := cluster.NewMemory(1 << 20)
	return m.Limiter(n.Limiter("memory", onRedis(t, n.client, "memory", tiers), local.New(n.store.Table("memory"), tiers))), m
}

// A refusal from memory is no sign of life: a Redis that hangs is away all the same.
func TestTake_RefusedFromMemory_HangingRedisIsAway(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	n := start(t, server.URL())
	l, m := rememberingOn(t, n)
	for range 3 {
		must.Get(l.Take(t.Context(), "bob"))(t)
	}
	servertest.Eventually(t, "a refusal from memory", func() bool {
		return !must.Get(l.Take(t.Context(), "bob"))(t).Allowed && m.Refusals() > 0
	})
	server.Pause()
	defer server.Resume()
	servertest.Eventually(t, "a refusal by the node alone", func() bool {
		v, err := l.Take(t.Context(), "bob")
		if err == nil && v.Allowed {
			t.Fatal("admitted")
		}
		return err == nil && v.Degraded
	})
}

// What a node refunded in an outage is not refused by what it remembers of the time before.
func TestRelease_InAnOutage_MemoryDoesNotRefuse(t *testing.T) {
	t.Parallel()
	server := redistest.Durable(t)
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
