package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/mailer/sandbox/fault"
	"github.com/mailgate/mailgate/rules"
	"github.com/mailgate/mailgate/throttle"
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

// Whoever is put off at RCPT was asked for at the relay. So a visitor who names such recipients
// uses his places up, and theirs are free; a relay in trouble takes nobody's.
func TestADeferralCountsForTheVisitor(t *testing.T) {
	for name, tt := range map[string]struct {
		script fault.Script
		third  int
	}{
		"to the recipient": {fault.Script{At: fault.RCPT, Kind: fault.Temporary}, 429},
		"to the mail":      {fault.Script{At: fault.Dot, Kind: fault.Temporary}, 503},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, setup{relay: &tt.script, rules: func(r *rig, _ *rules.Rule) []rules.Rule {
				return []rules.Rule{{Name: "visitors", By: rules.ByClientIP, Limiter: r.limiter.Tiers("visitors", must(throttle.ParsePolicy("hour=2/1h"))(t))}}
			}})
			for i, want := range []int{503, 503, tt.third} {
				email := fmt.Sprintf("x%d@no-such-domain.example", i)
				if got := r.sendAs(appKey, email, `,"client_ip":"203.0.113.7"`); got.status != want || r.used(email) != 0 {
					t.Errorf("send %d: %d, and %d of the mailbox are used", i+1, got.status, r.used(email))
				}
			}
			r.sendAs(appKey, "y@no-such-domain.example", `,"client_ip":"203.0.113.8"`).is(t, 503, "relay-unavailable")
		})
	}
}
