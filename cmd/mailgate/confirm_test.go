package main

import (
	"fmt"
	"net"
	"testing"

	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

// follow starts a replica of a server.
func follow(t *testing.T, master *redistest.Server) *redistest.Server {
	t.Helper()
	host, port, err := net.SplitHostPort(master.Addr)
	if err != nil {
		t.Fatal(err)
	}
	return redistest.Alone(t, "replicaof "+host+" "+port)
}

// A strict server sends no mail that a replica has not confirmed, whenever the replica is
// missing: before there is one, and after it was killed.
func TestStrictDurability(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, sandbox.Options{})
	master := redistest.Alone(t, "appendonly yes", "repl-diskless-sync-delay 0")
	server := startServer(t, settingsFor(relay.URL(), "MAILGATE_REDIS_URL="+master.URL(), "MAILGATE_REDIS_CONFIRM=1", shared))
	app := newClient(t, server.URL, apiKey)
	mails, tries := 0, 0
	sent := func() bool {
		tries++
		a, err := app.sendCode(fmt.Sprintf("strict%d@example.com", tries))
		if err != nil {
			t.Fatal(err)
		}
		if a.Status == 200 {
			mails++
		} else if a.Status != 503 || a.Body.Type != "urn:mailgate:problem:store-unavailable" {
			t.Fatalf("without a replica: %d %+v", a.Status, a.Body)
		}
		if n := len(relay.List()); n != mails {
			t.Fatalf("%d mails, %d confirmed", n, mails)
		}
		return a.Status == 200
	}
	if sent() {
		t.Error("sent before there is a replica")
	}
	for range 2 { // nobody is at the first when the second comes
		if a, err := app.once("strict", "key@example.com"); err != nil || a.Status != 503 {
			t.Errorf("under a key: %v %d %+v", err, a.Status, a.Body)
		}
	}
	app.must(t, "GET", "/readyz", "", 503)
	replica := follow(t, master)
	servertest.Eventually(t, "a confirmed send", sent)
	servertest.Eventually(t, "readiness", func() bool {
		a, err := app.ask("GET", "/readyz", "")
		return err == nil && a.Status == 200
	})
	replica.Kill()
	if sent() {
		t.Error("sent with the replica killed")
	}
	app.must(t, "GET", "/readyz", "", 503)
	replica.Restart()
	servertest.Eventually(t, "a confirmed send again", sent)
}

// refuses is the metric that says since when.
const refuses = "mailgate_store_refusing_since_timestamp_seconds"

// A node that refuses while Redis is away says so once when that begins and once when it
// ends, and by a metric, however many requests it refuses.
func TestRefusalIsTold(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, sandbox.Options{})
	redis := redistest.Alone(t, "appendonly yes")
	server := startServer(t, settingsFor(relay.URL(), "MAILGATE_REDIS_URL="+redis.URL(), "MAILGATE_REDIS_TIMEOUT=10s", "MAILGATE_ON_STORE_OUTAGE=refuse", shared))
	app := newClient(t, server.URL, apiKey)
	app.mustSend(t, "before@example.com", 200)
	if since := metric(t, server, refuses); since != "0" {
		t.Errorf("with redis: %s", since)
	}
	redis.Kill()
	for range 5 {
		app.mustSend(t, "meanwhile@example.com", 503)
	}
	if since := metric(t, server, refuses); since == "0" || since == "none" {
		t.Errorf("without redis: %s", since)
	}
	redis.Restart()
	servertest.Eventually(t, "the end of the outage", func() bool { return metric(t, server, refuses) == "0" })
	began, ended := mentions(server.log, "Redis is away: this node"), mentions(server.log, "\"Redis is back")
	if len(began) != 1 || began[0]["level"] != "WARN" || began[0]["cause"] == nil {
		t.Errorf("it began: %v", began)
	}
	if len(ended) != 1 || ended[0]["level"] != "INFO" || ended[0]["lasted"] == nil {
		t.Errorf("it ended: %v", ended)
	}
	app.mustSend(t, "after@example.com", 200)
}

// Beside a Cluster a server that refuses is ready while every master takes writes, and not while
// one does not: each mailbox is with one of them.
func TestReady_ClusterWithoutAMaster_Refuses(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, sandbox.Options{})
	cluster := redistest.Cluster(t)
	server := startServer(t, settingsFor(relay.URL(), "MAILGATE_REDIS_URL="+cluster.URL(), "MAILGATE_REDIS_TIMEOUT=5s", "MAILGATE_ON_STORE_OUTAGE=refuse", shared))
	app := newClient(t, server.URL, apiKey)
	app.must(t, "GET", "/readyz", "", 200)
	cluster.Replicas[1].Kill()
	cluster.Masters[1].Kill()
	app.must(t, "GET", "/readyz", "", 503)
	cluster.Masters[1].Restart()
	servertest.Eventually(t, "readiness", func() bool {
		a, err := app.ask("GET", "/readyz", "")
		return err == nil && a.Status == 200
	})
}
