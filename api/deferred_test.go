package api_test

import (
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
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
