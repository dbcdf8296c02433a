package api_test

import (
	"strings"
	"testing"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/mailer/relay"
)

// Two accounts at one host and port are one relay in the metrics: all the figures would be
// gone otherwise. One of the two that is left alone is enough for an alarm.
func TestMetricsOfTwoAccounts(t *testing.T) {
	r := newRig(t, setup{options: func(o *api.Options) {
		o.RelayStats = func() []relay.Stats {
			return []relay.Stats{
				{Relay: "one.example:465", Open: 3, Idle: 1, Waiting: 2, CircuitOpen: true},
				{Relay: "two.example:465", Open: 1},
				{Relay: "one.example:465", Open: 4, Idle: 3, Waiting: 5},
			}
		}
	}})
	got := r.do("GET", "/metrics", "", "")
	got.is(t, 200, "")
	for _, want := range []string{
		`mailgate_relay_connections{relay="one.example:465",state="idle"} 4`,
		`mailgate_relay_connections{relay="one.example:465",state="busy"} 3`,
		`mailgate_relay_connections{relay="two.example:465",state="busy"} 1`,
		`mailgate_relay_waiting{relay="one.example:465"} 7`,
		`mailgate_relay_circuit_open{relay="one.example:465"} 1`,
		`mailgate_relay_circuit_open{relay="two.example:465"} 0`,
	} {
		if !strings.Contains(got.text, want+"\n") {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	r.do("GET", "/admin/figures", opsKey, "").is(t, 200, "")
}
