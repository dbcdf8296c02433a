package api_test

import (
	"testing"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/mailer/relay"
)

// reload changes what is in force.
func (r *rig) reload(change func(*delivery.Live)) {
	live := r.Options.Live
	change(&live)
	r.Reload(live)
}

// A reload replaces the configuration, and recorded sends still count.
func TestReload_Replaces_CountsKept(t *testing.T) {
	r := newRig(t, setup{actions: twoActions})
	r.send("reloaded@example.com").is(t, 200, "")
	r.send("reloaded@example.com").is(t, 429, "quota-exceeded")
	r.reload(func(live *delivery.Live) { live.Rules = r.onlyMailbox("mailboxes", "minute=2/60s") })
	got := r.send("reloaded@example.com")
	got.is(t, 200, "")
	got.carries(t, map[string]string{"RateLimit-Policy": `"minute";q=2;w=60`, "RateLimit": `"minute";r=0;t=60`})
	r.reload(func(live *delivery.Live) { live.Actions = nil })
	r.act("reply", "take", `{"subject":"x"}`).is(t, 404, "unknown-action")
	r.send("reloaded@example.com").is(t, 429, "quota-exceeded")
}

// A send that is in progress is given back to the rules that charged it.
func TestReload_SendInProgress_GivenBackToItsRules(t *testing.T) {
	sender := newGated()
	sender.fails = &relay.Error{Outcome: relay.Unavailable}
	r := newRig(t, setup{options: func(o *apitest.Options) { o.Relay = sender }})
	answer := make(chan reply, 1)
	go func() { answer <- r.send("middle@example.com") }()
	<-sender.entered
	r.reload(func(live *delivery.Live) { live.Rules = r.onlyMailbox("elsewhere", "minute=1/60s") })
	close(sender.leave)
	(<-answer).is(t, 503, "relay-unavailable")
	r.charged("middle@example.com", 0)
	r.do("GET", "/mailboxes/middle@example.com", appKey, "").contains(t, `"limit":null`)
}
