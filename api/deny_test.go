package api_test

import (
	"testing"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/throttle/rules"
)

// What is denied is refused for good, costs nothing, and is seen by who asks about the mailbox. A retry under its key
// is decided anew.
func TestSend_Denied_NotCharged(t *testing.T) {
	r := newRig(t, setup{})
	deny := func(domains ...string) {
		mailbox := rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: r.Mailboxes}
		set := must.Get(rules.New(rules.Options{Denials: []rules.Case{{Name: "disposable", Some: rules.Some{rules.ByDomain: rules.Names(domains...)}}, {Name: "bounced", Some: rules.Some{rules.ByMailbox: rules.Names("gone@example.com")}}}}, mailbox))(t)
		r.Reload(delivery.Live{Rules: set, Composer: r.Options.Live.Composer})
	}
	deny("example.net")
	again := func() reply {
		return r.ask("POST", "/send-code", "x", "Authorization: Bearer "+appKey+"\r\nIdempotency-Key: one\r\n", `{"email":"a@sub.example.net"}`)
	}
	got := again()
	got.is(t, 422, "recipient-denied")
	got.says(t, fields{"rule": "disposable", "wait_ms": nil})
	r.sent(0)
	r.do("GET", "/mailboxes/a@sub.example.net", appKey, "").contains(t, `"denied":"disposable"`)
	r.do("POST", "/mailboxes/peek", appKey, `{"email":"a@example.net"}`).contains(t, `"denied":"disposable"`)
	r.do("GET", "/admin/mailboxes/a@example.net", opsKey, "").contains(t, `"denied":"disposable"`)
	r.send("gone@example.com").says(t, fields{"rule": "bounced", "type": "/docs#recipient-denied"})
	deny()
	r.charged("a@sub.example.net", 0)
	again().is(t, 200, "")
}
