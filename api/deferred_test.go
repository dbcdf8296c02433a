package api_test

import (
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// Anybody can name a domain that is not there, or a mailbox that takes no mail of strangers.
// That is counted apart from a relay's trouble, which wakes somebody; the answer is the same.
func TestMetricsOfADeferral(t *testing.T) {
	for name, tt := range map[string]struct {
		script        fault.Script
		counted, none string
	}{
		"to the recipient": {fault.Script{At: fault.RCPT, Kind: fault.Temporary}, "deferred", "unavailable"},
		"to the mail":      {fault.Script{At: fault.Dot, Kind: fault.Temporary}, "unavailable", "deferred"},
		"as not from us":   {fault.Script{At: fault.RCPT, Kind: fault.Barred}, "deferred", "unavailable"},
		"the mail from us": {fault.Script{At: fault.Dot, Kind: fault.Barred}, "unavailable", "deferred"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, setup{relay: &tt.script})
			r.send("x@no-such-domain.example").is(t, 503, "relay-unavailable")
			r.onceAs(appKey, "k", `{"email":"y@no-such-domain.example"}`).is(t, 503, "relay-unavailable")
			if r.used("x@no-such-domain.example") != 0 || r.used("y@no-such-domain.example") != 0 {
				t.Error("a mailbox was charged")
			}
			text := r.do("GET", "/metrics", "", "").text
			count := func(outcome string) string {
				return `mailgate_sends_total{limit="",outcome="` + outcome + `",rule=""} `
			}
			if !strings.Contains(text, count(tt.counted)+"2\n") || !strings.Contains(text, count(tt.none)+"0\n") {
				t.Errorf("it is not counted as %s alone", tt.counted)
			}
		})
	}
}

// A visitor cannot let the relay ask about recipients without end: what it defers gives the mailbox its
// charge back, and the visitor none.
func TestSend_RelayDefersTheRecipient_StaysChargedToTheVisitor(t *testing.T) {
	r := newRig(t, setup{relay: &fault.Script{At: fault.RCPT, Kind: fault.Temporary}, rules: func(r *rig, _ *rules.Rule) []rules.Rule {
		hour := must(throttle.NewFixedWindow(tier("hour", 3, 3_600_000)))(r.t)
		return []rules.Rule{
			{Name: "visitors", By: rules.ByClientIP, Limiter: r.counted("visitors", hour)},
			{Name: "all", By: rules.ByAll, Limiter: r.counted("all", hour)},
		}
	}})
	send := func(visitor string) reply {
		return r.do("POST", "/send-code", appKey, `{"email":"x@example.com","client_ip":"`+visitor+`"}`)
	}
	for range 3 {
		send("203.0.113.7").is(t, 503, "relay-unavailable")
	}
	if got := send("203.0.113.7"); got.status != 429 || got.body["rule"] != "visitors" {
		t.Errorf("the fourth of a visitor: %s", got.text)
	}
	send("203.0.113.8").is(t, 503, "relay-unavailable")
	if r.used("x@example.com") != 0 {
		t.Error("the mailbox was charged")
	}
}
