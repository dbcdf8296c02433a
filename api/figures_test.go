package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// Every figure is what was done, and none knows of whom.
func TestFigures(t *testing.T) {
	var down bool
	r := newRig(t, setup{
		options: func(o *api.Options) {
			o.Ready = func(context.Context) error {
				if down {
					return errStore
				}
				return nil
			}
		},
		rules: func(r *rig, _ *rules.Rule) []rules.Rule {
			all := r.counted("all", must(throttle.ParsePolicy("hour=1/1h"))(r.t))
			return []rules.Rule{{Name: "all", By: rules.ByAll, Limiter: all, Shadow: true}}
		},
	})
	started := r.now.Load()
	r.send("one@example.com").is(t, 200, "")
	r.send("one@example.com").is(t, 429, "quota-exceeded")
	r.send("one@example.com").is(t, 429, "quota-exceeded")
	r.send("two@example.com").is(t, 200, "")
	r.do("POST", "/admin/mailboxes/one@example.com/reset", opsKey, "").is(t, 200, "")
	r.box.Close()
	r.send("three@example.com").is(t, 503, "relay-unavailable")
	// The shadow would have refused the two that the mailbox's rule admitted after the first.
	r.now.Add(1500)
	down = true

	got := r.do("GET", "/admin/figures", opsKey, "")
	got.is(t, 200, "")
	want := `{"server_time":"` + stamp(started+1500) + `","since":"` + stamp(started) + `","ready":false,` +
		`"sends":{"sent":2,"unavailable":1},"refused":[{"rule":"mailbox","limit":"minute","count":2}],` +
		`"shadow_refused":[{"rule":"all","limit":"hour","count":2}],"refunds":1,"resets":1,` +
		`"relays":[{"idle":0,"busy":0,"waiting":0,"circuit_open":false}],"last_hour":{`
	if !strings.HasPrefix(got.text, want) {
		t.Errorf("answered\n%s, want\n%s", got.text, want)
	}
	down = false
	if got := r.do("GET", "/admin/figures", opsKey, ""); got.body["ready"] != true {
		t.Errorf("answered %s", got.text)
	}
}

// A server that nothing was asked of has empty figures rather than none.
func TestFiguresOfNothing(t *testing.T) {
	r := newRig(t, setup{options: func(o *api.Options) { o.RelayStats = nil }})
	now := stamp(r.now.Load())
	want := `{"server_time":"` + now + `","since":"` + now + `","ready":true,"sends":{},"refused":[],"shadow_refused":[],"refunds":0,"resets":0,"relays":[],"last_hour":{`
	if got := r.do("GET", "/admin/figures", opsKey, ""); !strings.HasPrefix(got.text, want) {
		t.Errorf("answered\n%s, want\n%s", got.text, want)
	}
}

// stamp is a moment as answers have it.
func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
