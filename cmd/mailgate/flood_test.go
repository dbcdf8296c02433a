package main

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
)

// decisions returns how many came from memory or from the store.
func (p *process) decisions(t testing.TB, from string) int {
	t.Helper()
	metrics := newClient(t, p.URL, "").get(t, "/metrics").Raw
	found := regexp.MustCompile(`\nmailgate_decisions_total\{from="` + from + `"\} (\d+)\n`).FindStringSubmatch(metrics)
	if found == nil {
		t.Fatalf("no decisions from %s in %s", from, metrics)
	}
	n, _ := strconv.Atoi(found[1]) // digits
	return n
}

// A flood is refused from memory, at each node. After a reset at one the other admits.
func TestServe_FloodBesideRedis_RefusedFromMemory(t *testing.T) {
	t.Parallel()
	redis, relay := redistest.Alone(t), startRelay(t)
	one := startServer(t, besideRedis(t, redis, relay.URL()))
	other := startServer(t, besideRedis(t, redis, relay.URL(), "MAILGATE_ON_STORE_OUTAGE=refuse"))
	newClient(t, one.URL, apiKey).mustSend(t, "alice@example.com", 200)
	for _, node := range []*process{one, other} {
		app := newClient(t, node.URL, apiKey)
		servertest.Eventually(t, "refusals from memory", func() bool {
			app.mustSend(t, "alice@example.com", 429)
			return node.decisions(t, "memory") >= 10
		})
		if node.decisions(t, "store") == 0 {
			t.Error("no decision came from Redis")
		}
	}
	newClient(t, one.URL, adminKey).must(t, "POST", "/admin/mailboxes/alice@example.com/reset", "", 200)
	began := time.Now()
	servertest.Eventually(t, "the other node to admit", func() bool {
		r, err := newClient(t, other.URL, apiKey).ask("POST", "/send-code", bodyFor("alice@example.com"), nil)
		return err == nil && r.Status == 200
	})
	if took := time.Since(began); took > 1500*time.Millisecond {
		t.Errorf("admitted %v after the reset", took)
	}
	newClient(t, one.URL, apiKey).mustSend(t, "alice@example.com", 429)
}
