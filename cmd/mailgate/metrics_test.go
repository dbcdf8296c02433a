package main

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

// metrics are all figures of a server.
func (p *process) metrics(t testing.TB) string {
	t.Helper()
	return client{url: p.URL, http: http.DefaultClient}.get(t, "/metrics").Raw
}

// metric is the value of a metric without labels.
func metric(t testing.TB, server *process, name string) string {
	t.Helper()
	for line := range strings.Lines(server.metrics(t)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return "none"
}

// docs/metrics.md has every metric that servers have, with its labels, and no other.
func TestMetricsAreDocumented(t *testing.T) {
	redis := redistest.Alone(t)
	relay := startRelay(t, sandbox.Options{})
	s := startSiteBefore(t, "smtp://127.0.0.1:1?tls=none,"+relay.URL()+","+relay.URL(), `
rules:
  - {name: trial, by: api_key, limit: day=1/24h, shadow: true}
actions:
  - {name: login, limit: minute=5/60s}
`, "MAILGATE_REDIS_URL="+redis.URL(), "MAILGATE_REDIS_TIMEOUT=10s", shared)
	refusing := startServer(t, settingsFor(relay.URL(), "MAILGATE_REDIS_URL="+redis.URL(), "MAILGATE_REDIS_TIMEOUT=10s", "MAILGATE_ON_STORE_OUTAGE=refuse", shared))
	for n := range 6 { // so many that the relay which is not there is left alone
		s.app.mustSend(t, fmt.Sprintf("user%d@example.com", n), 200)
	}
	s.app.must(t, "POST", "/actions/login/take", `{"subject":"user"}`, 200)
	s.app.must(t, "POST", "/verify-code", `{"email":"nobody@example.com","code":"123456"}`, 410)

	served := metricsOf(t, s.metrics(t))
	maps.Copy(served, metricsOf(t, refusing.metrics(t)))
	text := readFile(t, "../../docs/metrics.md")
	documented := map[string]string{}
	for _, line := range regexp.MustCompile("(?m)^\\| `(mailgate_\\w+)(?:\\{(.*?)\\})?` \\|").FindAllStringSubmatch(text, -1) {
		documented[line[1]] = sorted(strings.Split(line[2], ","))
	}
	for name, labels := range served {
		if had, found := documented[name]; !found || had != labels {
			t.Errorf("%s has the labels %q; documented: %v, with %q", name, labels, found, had)
		}
	}
	for _, outcome := range regexp.MustCompile(`mailgate_sends_total\{.*outcome="(.*?)"`).FindAllStringSubmatch(s.metrics(t), -1) {
		if !regexp.MustCompile("(?m)^\\| .*`" + outcome[1] + "`.* \\|").MatchString(text) {
			t.Errorf("the outcome %s of sends is not documented", outcome[1])
		}
	}
	for name := range documented {
		if _, found := served[name]; !found {
			t.Errorf("%s is documented, and no server has it", name)
		}
	}
}

// metricsOf are the labels of each metric of ours, by its name.
func metricsOf(t *testing.T, text string) map[string]string {
	t.Helper()
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
	if len(all) == 0 {
		t.Fatal("the server has no metrics")
	}
	return all
}

func sorted(names []string) string {
	slices.Sort(names)
	return strings.Join(names, ",")
}
