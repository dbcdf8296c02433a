package main

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
)

// A node continues while Redis is away, also after it was killed, says so in its answers, the log
// and the metrics, and then tells Redis what it admitted.
func TestRedis_Away_NodeContinuesAndTellsIt(t *testing.T) {
	t.Parallel()
	redis, relay := redistest.Durable(t), startRelay(t)
	environ := besideRedis(t, redis, relay.URL())
	server, other := startServer(t, environ), startServer(t, besideRedis(t, redis, relay.URL()))
	app := newClient(t, server.URL, apiKey)
	app.mustSend(t, "bob@example.com", 200)
	redis.Kill()
	if r := app.mustSend(t, "bob@example.com", 429); !r.Body.Degraded {
		t.Errorf("after a send with Redis: %s", r.Raw)
	}
	alone := app.mustSend(t, "alice@example.com", 200)
	if ready := app.must(t, "GET", "/readyz", "", 200); !alone.Body.Degraded || !strings.Contains(ready.Raw, `"degraded":true,"degraded_since":"20`) || !strings.Contains(ready.Raw, `"journal":`) {
		t.Errorf("without Redis: %s, /readyz %s", alone.Raw, ready.Raw)
	}
	server.Stop(t, syscall.SIGKILL)

	server = startServer(t, environ)
	if r := newClient(t, server.URL, apiKey).mustSend(t, "alice@example.com", 429); !r.Body.Degraded || r.Body.Limit != "minute" {
		t.Errorf("after the restart: %s", r.Raw)
	}
	redis.Restart()
	for _, node := range []*process{server, other} {
		servertest.Eventually(t, "the end of the outage", func() bool { return node.shows(t, "mailgate_store_degraded 0") })
	}
	told := newClient(t, other.URL, adminKey).must(t, "GET", "/admin/mailboxes/alice@example.com", "", 200)
	if len(told.Body.Sends) != 1 || told.Body.Sends[0].ID != alone.Body.ID {
		t.Errorf("on record is %s, want %v", told.Raw, alone.Body.ID)
	}
	servertest.Eventually(t, "the log has its end", func() bool { return len(server.Log.Lines(`"Redis is back`)) > 0 })
	if ended := server.Log.Lines(`"Redis is back`); len(ended) != 1 {
		t.Errorf("the log has %v", ended)
	}
}

// A node without a data directory starts without Redis, refuses and is not ready, and serves
// when Redis is back. It logs an outage though no request meets it.
func TestRedis_AwayAndNoDataDir_Refuses(t *testing.T) {
	t.Parallel()
	redis, relay := redistest.Alone(t), startRelay(t)
	redis.Kill()
	server := startServer(t, besideRedis(t, redis, relay.URL(), inMemory))
	if does := server.awaitLine(t, "serving", "on_store_outage"); does != "refuse" {
		t.Errorf("in an outage it will %s", does)
	}
	server.awaitLine(t, "Redis is away: this node refuses until it is back", "cause")
	app, environ := newClient(t, server.URL, apiKey), []string{"MAILGATE_URL=" + server.URL}
	if r := app.mustSend(t, "alice@example.com", 503); r.Body.Type != "/docs#store-unavailable" || r.Header.Get("Retry-After") == "" {
		t.Errorf("with Redis away: %s", r.Raw)
	}
	does(t, environ, exitFailure, "503", "healthcheck")
	redis.Restart()
	servertest.Eventually(t, "readiness", func() bool {
		status, _, _ := run(t, environ, "healthcheck")
		return status == exitOK
	})
	app.mustSend(t, "alice@example.com", 200)
	server.awaitLine(t, "Redis is back", "level")
	if len(relay.List()) != 1 {
		t.Errorf("%d emails", len(relay.List()))
	}
}

// Each mailbox is with one master of a Cluster, so a server that refuses in an outage is ready
// only while all of them take writes.
func TestRedis_ClusterWithoutAMaster_IsNotReady(t *testing.T) {
	t.Parallel()
	cluster := redistest.Cluster(t)
	server := startServer(t, settingsFor(startRelay(t).URL(), "MAILGATE_REDIS_URL="+cluster.URL(), "MAILGATE_REDIS_TIMEOUT=5s", "MAILGATE_SECRET=all-"+secret))
	app := newClient(t, server.URL, apiKey)
	app.must(t, "GET", "/readyz", "", 200)
	cluster.Replicas[1].Kill()
	cluster.Masters[1].Kill()
	servertest.Eventually(t, "the end of readiness", func() bool { return app.get(t, "/readyz").Status == 503 })
	cluster.Masters[1].Restart()
	servertest.Eventually(t, "readiness", func() bool { return app.get(t, "/readyz").Status == 200 })
}

// permitted is what docs/redis.md says that a user of Redis needs, for another prefix.
func permitted(t *testing.T, prefix string) string {
	t.Helper()
	found := regexp.MustCompile("`(~mailgate:[^`]*)`").FindStringSubmatch(readFile(t, "../../docs/redis.md"))
	if found == nil {
		t.Fatal("docs/redis.md does not say what a user of Redis has to be allowed")
	}
	return strings.NewReplacer(`\|`, "|", "~mailgate:", "~"+prefix+":", "&mailgate:", "&"+prefix+":").Replace(found[1])
}

// Two deployments share a Redis and no record in it, though they have one secret. Each has a user
// that may do what the documentation says.
func TestRedis_TwoPrefixes_ShareNoRecord(t *testing.T) {
	t.Parallel()
	const everyKind = `rules:
- {name: log, by: client_ip, limit: day=9/24h}
- {name: window, by: domain, algorithm: sliding-window, limit: day=9/24h}
- {name: fixed, by: all, algorithm: fixed-window, limit: decade=9/87840h}
- {name: tokens, by: api_key, algorithm: token-bucket, limit: day=9/24h, burst: 9}
- {name: queue, by: template, algorithm: leaky-bucket, limit: second=9/1s, queue: 9}
actions:
- {name: login, limit: day=1/24h}
`
	prefixes := []string{"mailgate", "mailgate-staging"}
	var users []string
	for _, prefix := range prefixes {
		users = append(users, fmt.Sprintf("user %s on >%s %s", prefix, secret, permitted(t, prefix)))
	}
	redis := redistest.Alone(t, users...)
	var sites []*site
	relay := startRelay(t)
	for _, prefix := range prefixes {
		url := strings.Replace(redis.URL(), "redis://", "redis://"+prefix+":"+secret+"@", 1)
		sites = append(sites, startSite(t, everyKind, besideRedis(t, redis, relay.URL(), "MAILGATE_REDIS_URL="+url, "MAILGATE_REDIS_PREFIX="+prefix)))
	}
	for _, s := range sites {
		if r, err := s.app.sendOnce("key", "alice@example.com"); err != nil || r.Status != 200 || r.Header.Get("Idempotent-Replayed") != "" {
			t.Errorf("the first send: %v %d %s", err, r.Status, r.Raw)
		}
		s.app.mustSend(t, "alice@example.com", 429)
		s.app.must(t, "POST", "/send-code", `{"email":"bob@example.com","client_ip":"203.0.113.7"}`, 200)
		s.app.must(t, "POST", "/actions/login/take", `{"subject":"alice"}`, 200)
		s.app.must(t, "POST", "/actions/login/take", `{"subject":"alice"}`, 429)
	}
	code := sixDigits.FindString(relay.List()[0].Text)
	sites[1].app.mustVerify(t, "alice@example.com", code, 422)
	newClient(t, sites[1].URL, adminKey).must(t, "POST", "/admin/mailboxes/alice@example.com/reset", "", 200)
	sites[0].app.mustSend(t, "alice@example.com", 429)
	sites[0].app.mustVerify(t, "alice@example.com", code, 200)

	ctx := context.Background()
	keys, err := redis.Client().Keys(ctx, "*").Result()
	for _, key := range keys {
		if !strings.HasPrefix(key, prefixes[0]+":") && !strings.HasPrefix(key, prefixes[1]+":") {
			t.Errorf("a key begins with neither prefix: %q", key)
		}
	}
	denied, errDenied := redis.Client().ACLLog(ctx, 10).Result()
	if err != nil || errDenied != nil || len(keys) < 20 || len(denied) > 0 {
		t.Errorf("%v, %v, %d keys, Redis denied %v", err, errDenied, len(keys), denied)
	}
}

// A node does not share records with one that writes them in another format.
func TestRedis_RecordsOfAnotherFormat_NotServed(t *testing.T) {
	t.Parallel()
	redis, relay := redistest.Alone(t), startRelay(t)
	startServer(t, besideRedis(t, redis, relay.URL()))
	if format, err := redis.Client().Get(context.Background(), "mailgate:format").Int(); err != nil || format != recordFormat {
		t.Errorf("on record is the format %d, %v", format, err)
	}
	redis.Client().Set(context.Background(), "mailgate:format", recordFormat+1, 0)
	says := fmt.Sprintf("have another format: %d, and this program reads %d; run the version of mailgate that wrote them", recordFormat+1, recordFormat)
	does(t, besideRedis(t, redis, relay.URL()), exitMisusage, says, "serve")
	startServer(t, besideRedis(t, redis, relay.URL(), "MAILGATE_REDIS_PREFIX=another"))
}

// A replica that need not confirm a send could be promoted without it.
func TestRedis_MoreReplicasThanConfirm_Warns(t *testing.T) {
	t.Parallel()
	redis, relay := redistest.Alone(t), startRelay(t)
	host, port, _ := net.SplitHostPort(redis.Addr)
	const warning = "a failover can promote one that lacks sends"
	for replicas := 1; replicas <= 2; replicas++ {
		redistest.Alone(t, "replicaof "+host+" "+port)
		servertest.Eventually(t, "the replica to show", func() bool {
			return strings.Count(redis.Client().Info(t.Context(), "replication").Val(), "state=online") == replicas
		})
		server := startServer(t, besideRedis(t, redis, relay.URL(), "MAILGATE_REDIS_CONFIRM=1"))
		if warned := server.Log.Lines(warning); len(warned) != replicas-1 {
			t.Errorf("with %d replicas the log has %v", replicas, warned)
		}
	}
}
