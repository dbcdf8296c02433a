package api_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// has fails the test unless /metrics has these lines, and returns all of it.
func (r *rig) has(t testing.TB, lines ...string) string {
	t.Helper()
	text := r.do("GET", "/metrics", "", "").text
	for _, want := range lines {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	return text
}

// No mailbox is among the labels.
func TestMetrics_Sends_CountedWithoutMailboxes(t *testing.T) {
	r := newRig(t, setup{})
	r.send("counted@example.com").is(t, 200, "")
	r.send("counted@example.com").is(t, 429, "quota-exceeded")
	r.send("no-at").is(t, 422, "invalid")
	r.do("POST", "/admin/mailboxes/counted@example.com/reset", opsKey, "").is(t, 200, "")
	text := r.has(t,
		`mailgate_sends_total{door="http",limit="",outcome="sent",rule=""} 1`,
		`mailgate_sends_total{door="http",limit="minute",outcome="quota-exceeded",rule="mailbox"} 1`,
		`mailgate_http_requests_total{route="send-code",status="200"} 1`,
		`mailgate_http_requests_total{route="send-code",status="429"} 1`,
		`mailgate_http_requests_total{route="send-code",status="422"} 1`,
		`mailgate_http_request_duration_seconds_count{route="send-code"} 3`,
		`mailgate_decision_duration_seconds_count 2`,
		`mailgate_relay_duration_seconds_count{outcome="sent"} 1`,
		`mailgate_relay_try_duration_seconds_count{relay="`+r.Relay.Addr()+`",result="sent"} 1`,
		`mailgate_relay_connections{relay="`+r.Relay.Addr()+`",state="idle"} 1`,
		`mailgate_relay_circuit_open{relay="`+r.Relay.Addr()+`"} 0`,
		`mailgate_relay_waiting{relay="`+r.Relay.Addr()+`"} 0`,
		`mailgate_resets_total 1`,
		`mailgate_build_info{version="dev"} 1`,
	)
	// A client that finds its connection in use opens another.
	if !regexp.MustCompile(`(?m)^mailgate_http_connections [1-5]$`).MatchString(text) {
		t.Error("/metrics lacks the connections that are open")
	}
	if strings.Contains(text, "counted@") || strings.Contains(text, "example.com") {
		t.Error("a mailbox is in the metrics")
	}
}

// Counts that alerts use start at 0: an increase from nothing would not be seen.
func TestMetrics_NothingCounted_AreZero(t *testing.T) {
	text := newRig(t, setup{}).has(t, `mailgate_refunds_total{result="refunded"} 0`, `mailgate_refunds_total{result="given-up"} 0`)
	for _, outcome := range []string{"sent", "replayed", "rejected", "unavailable", "deferred", "unknown", "busy", "store-unavailable", "mismatch", "in-flight", "failed"} {
		if want := `mailgate_sends_total{door="http",limit="",outcome="` + outcome + `",rule=""} 0`; !strings.Contains(text, want+"\n") {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}

// Paths, methods, templates and keys that do not exist make no series of their own.
func TestMetrics_UnknownNames_AddNoSeries(t *testing.T) {
	r := newRig(t, setup{})
	series := func(i int) int {
		name := fmt.Sprint("x", i)
		r.do("GET", "/"+name, "", "").is(t, 404, "not-found")
		r.do("GET", "/mailboxes/"+name+"@example.com", appKey, "").is(t, 200, "")
		r.do("POST", "/send-code", appKey, `{"email":"a@example.com","template":"`+name+`"}`).is(t, 422, "invalid")
		r.do("POST", "/send-code", name, `{"email":"a@example.com"}`).is(t, 401, "unauthorized")
		r.do("POST", "/actions/"+name+"/take", appKey, `{"subject":"a"}`)
		r.do("BREW"+strings.ToUpper(name), "/livez", "", "").is(t, 501, "method-unknown")
		return strings.Count(r.has(t), "\nmailgate_")
	}
	r.has(t)
	first, last := series(0), 0
	for i := range 20 {
		last = series(i + 1)
	}
	if first == 0 || first != last {
		t.Errorf("%d series after one of each, %d after twenty more", first, last)
	}
}

// While a relay's circuit is open Retry-After says for how long.
func TestMetrics_RelayDown_CountsFailuresAndRefunds(t *testing.T) {
	r := newRig(t, setup{})
	r.Relay.Close()
	for n := range 6 { // five failures open the breaker, for five seconds
		got := r.send("unlucky@example.com")
		got.is(t, 503, "relay-unavailable")
		after, _ := strconv.Atoi(got.header.Get("Retry-After"))
		if n < 5 && after != 10 || n == 5 && (after < 1 || after > 5) {
			t.Errorf("send %d: Retry-After %d", n, after)
		}
	}
	r.has(t,
		`mailgate_sends_total{door="http",limit="",outcome="unavailable",rule=""} 6`,
		`mailgate_refunds_total{result="refunded"} 6`,
		`mailgate_relay_circuit_opens_total{relay="`+r.Relay.Addr()+`"} 1`,
		`mailgate_relay_circuit_open{relay="`+r.Relay.Addr()+`"} 1`,
	)
}

// A visitor cannot use the relay to probe recipients without end: what it defers is given back to the
// mailbox and stays charged to the visitor.
func TestSend_RelayDefersTheRecipient_StaysChargedToTheVisitor(t *testing.T) {
	r := newRig(t, setup{relay: &fault.Script{At: fault.RCPT, Kind: fault.Temporary}, rules: func(r *rig, own *rules.Rule) []rules.Rule {
		return append(also("visitors", rules.ByClientIP, "hour=3/1h")(r, own), also("all", rules.ByAll, "hour=3/1h")(r, own)...)
	}})
	for range 3 {
		r.sendAs(appKey, "x@example.com", `,"client_ip":"203.0.113.7"`).is(t, 503, "relay-unavailable")
	}
	r.sendAs(appKey, "x@example.com", `,"client_ip":"203.0.113.7"`).says(t, fields{"status": 429.0, "rule": "visitors"})
	r.sendAs(appKey, "x@example.com", `,"client_ip":"203.0.113.8"`).is(t, 503, "relay-unavailable")
	r.charged("x@example.com", 0)
}

// Two accounts at one host and port are one relay in the metrics, where a label must not repeat. An
// open circuit of either is an alert.
func TestMetrics_TwoAccountsOfOneRelay_AreOne(t *testing.T) {
	r := newRig(t, setup{options: func(o *apitest.Options) {
		o.Health.RelayStats = func() []relay.Stats {
			return []relay.Stats{
				{Relay: "one.example:465", Open: 3, Idle: 1, Waiting: 2, CircuitOpen: true},
				{Relay: "two.example:465", Open: 1},
				{Relay: "one.example:465", Open: 4, Idle: 3, Waiting: 5},
			}
		}
	}})
	r.has(t,
		`mailgate_relay_connections{relay="one.example:465",state="idle"} 4`,
		`mailgate_relay_connections{relay="one.example:465",state="busy"} 3`,
		`mailgate_relay_connections{relay="two.example:465",state="busy"} 1`,
		`mailgate_relay_waiting{relay="one.example:465"} 7`,
		`mailgate_relay_circuit_open{relay="one.example:465"} 1`,
		`mailgate_relay_circuit_open{relay="two.example:465"} 0`,
	)
}

func TestFigures_Sends_Counted(t *testing.T) {
	var down atomic.Bool
	r := newRig(t, setup{
		options: func(o *apitest.Options) {
			o.Health.Ready = func(context.Context) error {
				if down.Load() {
					return throttletest.ErrFault
				}
				return nil
			}
		},
		rules: func(r *rig, own *rules.Rule) []rules.Rule {
			all := also("all", rules.ByAll, "hour=1/1h")(r, own)
			all[0].Shadow = true
			return all
		},
	})
	started := r.now.Load()
	r.do("GET", "/admin/figures", opsKey, "").contains(t, `{"all_nodes":false,"server_time":"`+stamp(started)+`","since":"`+stamp(started)+`","ready":true,"sends":{},"refused":[],"shadow_refused":[],"refunds":0,"resets":0,`)
	r.send("one@example.com").is(t, 200, "")
	r.send("one@example.com").is(t, 429, "quota-exceeded")
	r.send("one@example.com").is(t, 429, "quota-exceeded")
	r.send("two@example.com").is(t, 200, "") // the shadow rule would refuse it and the next
	r.do("POST", "/admin/mailboxes/one@example.com/reset", opsKey, "").is(t, 200, "")
	r.Relay.Close()
	r.send("three@example.com").is(t, 503, "relay-unavailable")
	r.now.Add(1500)
	down.Store(true)
	servertest.Eventually(t, "the figures say that nothing is ready", func() bool {
		return r.do("GET", "/admin/figures", opsKey, "").body["ready"] == false
	})
	r.do("GET", "/admin/figures", opsKey, "").contains(t, `{"all_nodes":false,"server_time":"`+stamp(started+1500)+`","since":"`+stamp(started)+`","ready":false,`+
		`"sends":{"sent":2,"unavailable":1},"refused":[{"rule":"mailbox","limit":"minute","count":2}],`+
		`"shadow_refused":[{"rule":"all","limit":"hour","count":2}],"refunds":1,"resets":1,`+
		`"relays":[{"idle":0,"busy":0,"waiting":0,"circuit_open":false}],"last_hour":{`)
}

// stamp is a moment as answers have it.
func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// A burst counts in full from its first second, for one minute, and stays in the last hour.
func TestFigures_Burst_CountsForAMinuteAndShowsForAnHour(t *testing.T) {
	r := newRig(t, setup{})
	r.now.Store(1_800_000_010_000)
	const burst = 30
	for i := range burst {
		r.send(fmt.Sprintf("a%d@example.com", i)).is(t, 200, "")
	}
	r.send("a0@example.com").is(t, 429, "quota-exceeded")
	for _, tt := range []struct {
		passed     int64 // milliseconds since the burst
		sent, peak float64
	}{{0, burst, burst}, {59_000, burst, burst}, {60_000, 0, burst}, {3_590_000, 0, burst}, {3_700_000, 0, 0}} {
		r.now.Store(1_800_000_010_000 + tt.passed)
		hour := r.do("GET", "/admin/figures", opsKey, "").body["last_hour"].(map[string]any)
		sent, refused := hour["sent"].([]any), hour["refused"].([]any)
		if got := sent[len(sent)-1]; got != tt.sent || len(sent) != 181 || len(refused) != 181 {
			t.Errorf("%d ms later: %v sent in the last minute, want %v; %d and %d points", tt.passed, got, tt.sent, len(sent), len(refused))
		}
		if has := slices.Contains(sent, any(tt.peak)) && slices.Contains(refused, any(min(1, tt.peak))); !has {
			t.Errorf("%d ms later: no point of the last hour is %v", tt.passed, tt.peak)
		}
	}
}
