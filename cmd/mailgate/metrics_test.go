package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
)

// docs/metrics.md lists every metric that servers have, with its labels, and no other. docs/problems.md has the outcomes of sends.
func TestMetrics_EachOne_IsDocumented(t *testing.T) {
	t.Parallel()
	redis, relay := redistest.Alone(t), startRelay(t)
	const rules = `
rules:
  - {name: trial, by: api_key, limit: day=1/24h, shadow: true}
actions:
  - {name: login, limit: minute=5/60s}
`
	s := startSite(t, rules, besideRedis(t, redis, "smtp://127.0.0.1:1?tls=none,"+relay.URL()+","+relay.URL(), "MAILGATE_SUBMISSION_LISTEN=127.0.0.1:0", "MAILGATE_HOOK_BREVO="+brevoToken, "MAILGATE_EVENTS_URL=http://127.0.0.1:1", "MAILGATE_EVENTS_SECRET="+eventsSecret))
	for n := range 6 { // so many that the circuit breaker of the missing relay opens
		s.app.mustSend(t, fmt.Sprintf("user%d@example.com", n), 200)
	}
	s.app.must(t, "POST", "/actions/login/take", `{"subject":"user"}`, 200)
	s.app.mustVerify(t, "other@example.com", "123456", 410)

	text, served := readFile(t, "../../docs/metrics.md"), s.app.get(t, "/metrics").Raw
	documented := map[string]string{}
	for _, line := range regexp.MustCompile("(?m)^\\| `(mailgate_\\w+)(?:\\{(.*?)\\})?` \\|").FindAllStringSubmatch(text, -1) {
		documented[line[1]] = sorted(strings.Split(line[2], ","))
	}
	if has := metricsOf(served); !maps.Equal(has, documented) {
		t.Errorf("servers have %v\nthe documentation %v", has, documented)
	}
	shownBy(t, documented)
	for _, outcome := range regexp.MustCompile(`mailgate_sends_total\{.*outcome="(.*?)"`).FindAllStringSubmatch(served, -1) {
		if !regexp.MustCompile("(?m)^\\| .*`" + outcome[1] + "`.* \\|").MatchString(readFile(t, "../../docs/problems.md")) {
			t.Errorf("the outcome %s of sends is not documented", outcome[1])
		}
	}
}

// metricsOf are the labels of each metric of ours, by its name.
func metricsOf(text string) map[string]string {
	all := map[string]string{}
	for _, family := range regexp.MustCompile(`(?m)^# TYPE (mailgate_\w+) (\w+)\n(.*)$`).FindAllStringSubmatch(text, -1) {
		var labels []string
		for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(family[3], -1) {
			if label[1] != "le" {
				labels = append(labels, label[1])
			}
		}
		all[family[1]] = sorted(labels)
	}
	return all
}

func sorted(names []string) string {
	slices.Sort(names)
	return strings.Join(names, ",")
}

// Processes that share a history show whether they share the secret, in the log and the metrics.
func TestSecretDigest_BesideRedis_IsShown(t *testing.T) {
	t.Parallel()
	relay, redis := startRelay(t), redistest.Alone(t)
	digest := func(more ...string) string {
		server := startServer(t, besideRedis(t, redis, relay.URL(), more...))
		digest := server.awaitLine(t, "serving", "secret_digest")
		if !server.shows(t, fmt.Sprintf("mailgate_secret_info{digest=%q} 1", digest)) {
			t.Errorf("the digest %q is not in the metrics", digest)
		}
		return digest
	}
	if one, same, other := digest(), digest(), digest("MAILGATE_SECRET=another-"+secret); len(one) != 4 || one != same || one == other {
		t.Errorf("the digests are %q and %q, of another secret %q", one, same, other)
	}
}

// MAILGATE_OPS_LISTEN serves the metrics, which are nowhere else then, the health checks, and nothing more.
func TestOpsListen_Set_HasMetricsAlone(t *testing.T) {
	t.Parallel()
	environ := settingsFor(startRelay(t).URL(), inMemory, "MAILGATE_OPS_LISTEN=127.0.0.1:0")
	server := startServer(t, environ)
	address := server.awaitLine(t, "serving", "ops_address")
	main, ops := newClient(t, server.URL, apiKey), newClient(t, "http://"+address, apiKey)
	main.mustSend(t, "alice@example.com", 200)
	for path, want := range map[string]struct{ main, ops int }{
		"/metrics": {404, 200}, "/livez": {200, 200}, "/readyz": {200, 200},
		"/docs": {200, 404}, "/admin": {200, 404}, "/mailboxes/alice@example.com": {200, 404}, "/nothing": {404, 404},
	} {
		if at, there := main.get(t, path).Status, ops.get(t, path).Status; at != want.main || there != want.ops {
			t.Errorf("%s: %d and at the other %d; want %d and %d", path, at, there, want.main, want.ops)
		}
	}
	ops.mustSend(t, "bob@example.com", 404)
	if text := ops.get(t, "/metrics").Raw; !strings.Contains(text, `mailgate_sends_total{door="http",limit="",outcome="sent",rule=""} 1`+"\n") {
		t.Error("the send is not counted")
	}
	at := []string{"MAILGATE_LISTEN=127.0.0.1:1", "MAILGATE_OPS_LISTEN=" + address}
	does(t, at, exitOK, "", "healthcheck")
	does(t, append(at, "MAILGATE_URL=http://127.0.0.1:1"), exitFailure, "no server answers", "healthcheck")
}

// shownBy fails the test if the alerts or the dashboard use a metric or a label that no server has.
func shownBy(t testing.TB, served map[string]string) {
	t.Helper()
	for _, file := range []string{"chart/alerts.yaml", "grafana.json"} {
		text := readFile(t, deployed+file)
		used := regexp.MustCompile(`(mailgate_[a-z_]+)(?:\{(.*?)\})?`).FindAllStringSubmatch(strings.ReplaceAll(text, `\"`, `"`), -1)
		for _, one := range used {
			name := strings.TrimSuffix(strings.TrimSuffix(one[1], "_bucket"), "_count")
			labels, known := served[name]
			if !known {
				t.Errorf("%s: no server has %s", file, one[1])
			}
			for _, label := range regexp.MustCompile(`(\w+)(?:=~|=|!=)"`).FindAllStringSubmatch(one[2], -1) {
				if label[1] != "instance" && label[1] != "job" && !slices.Contains(strings.FieldsFunc(labels, func(r rune) bool { return r == ',' || r == ' ' }), label[1]) {
					t.Errorf("%s: %s has no label %s, but %s", file, name, label[1], labels)
				}
			}
		}
		if len(used) < 10 {
			t.Errorf("%s uses %d metrics", file, len(used))
		}
	}
	var dashboard struct {
		Panels []struct {
			Title, Description string
			Targets            []struct{ Expr string }
		}
	}
	must.OK(t, json.Unmarshal([]byte(readFile(t, deployed+"grafana.json")), &dashboard))
	for _, panel := range dashboard.Panels {
		if panel.Title == "" || panel.Description == "" || len(panel.Targets) == 0 {
			t.Errorf("a panel lacks something: %+v", panel)
		}
	}
}
