package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
)

// A full disk of the node is no reason to refuse while Redis decides. When Redis is away, too, the
// node refuses, as its own records lack sends.
func TestRedis_OwnDiskFull_SendsContinueUntilItIsAway(t *testing.T) {
	servertest.OnDisk(t, "size=6m", func(mount string) {
		redis, relay := redistest.Alone(t), startRelay(t)
		server := startServer(t, besideRedis(t, redis, relay.URL(), "MAILGATE_DATA_DIR="+filepath.Join(mount, "data")))
		app := newClient(t, server.URL, apiKey)
		app.mustSend(t, "before@example.com", 200)
		servertest.Fill(t, filepath.Join(mount, "neighbor"))
		for n := range 20 {
			app.mustSend(t, fmt.Sprintf("user%d@example.com", n), 200)
		}
		if r, err := app.sendOnce("order-1", "keyed@example.com"); err != nil || r.Status != 200 {
			t.Errorf("with an Idempotency-Key: %v, %d %s", err, r.Status, r.Raw)
		}
		if len(server.Log.Lines("could not be recorded on this node")) == 0 {
			t.Error("the disk was not full")
		}
		redis.Kill()
		app.mustSend(t, "later@example.com", 503)
	})
}
