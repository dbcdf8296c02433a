package web_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/suppression"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// state is what the console says of the mailbox and of each lane.
const state = `[document.getElementById("found-pill"), ...document.querySelectorAll("#lanes li span")].map((one) => one.textContent).join(", ")`

// A mailbox that a rule denies email is shown as such, not with a wait that would not help it. The entry that denies it,
// or excepts it from a rule, is named by its comment and line.
func TestConsole_CasesOfAMailbox_AreNamed(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(s *apitest.Server, o *apitest.Options) {
		at := func(line int32, domain string) rules.Some {
			return rules.Some{rules.ByDomain: {{Text: domain, Line: line, Listed: line > 99}}}
		}
		mailbox := rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: s.Mailboxes, Cases: []rules.Case{
			{Some: at(14, "customer.example"), Limit: throttle.DefaultPolicy(), File: "rules.yaml", Comment: "a customer"},
			{Some: at(812, "customer.example"), Limit: throttle.DefaultPolicy(), File: "rules.yaml", List: "lists/of-the-old-system/bounced.txt", Shadow: true},
		}}
		denied := rules.Case{Name: "disposable", Some: at(4711, "mailinator.example"), File: "rules.yaml", List: "list.txt"}
		o.Live.Rules = must.Get(rules.New(rules.Options{Denials: []rules.Case{denied}}, mailbox))(t)
	})
	v := newVisitor(t)
	s.sent("mallory@mailinator.example", 0)
	v.signsIn(s)
	v.looksUp("mallory@mailinator.example")
	v.reads("found-why", "Gets no email: denied by the rule disposable (list.txt:4711).")
	v.is(state, "no email, 1 of 1 used, 1 of 5 used, 1 of 10 used")
	v.is(`document.getElementById("found-cases").textContent`, "")
	v.looksUp("alice@customer.example")
	v.reads("found-cases", "mailbox: override (a customer, rules.yaml:14)\nmailbox: shadow override (lists/of-the-old-system/bounced.txt:812)")
	v.looksRight("console-cases")
}

// One operator's story: add a mailbox to the list, page through it, remove what a visitor has asked about, and sign out.
func TestConsole_Suppressions_AddedPagedRemoved(t *testing.T) {
	t.Parallel()
	s, v := newServer(t, nil), newVisitor(t)
	v.signsIn(s)
	v.click("#show-suppressions")
	v.reads("show-suppressions", "The list is empty.")
	v.enters("suppress-email", "no address")
	v.isTrue(`document.getElementById("suppress-note").textContent.length > 10`)
	v.types("suppress-source", "ticket 4711")
	v.enters("suppress-email", "Alice+x@example.com")
	v.reads("suppress-done", "Alice+x@example.com gets no email until you remove it.")
	v.click("#show-suppressions")
	v.reads("suppressions", "alice@example.commanualit is removedticket 4711")
	list := s.Options.Suppressions
	for i, reason := range []suppression.Reason{suppression.HardBounce, suppression.Complaint, suppression.NotMe} {
		to := must.Get(address.Parse(fmt.Sprintf("a-rather-long-name-%d@subdomain.example.com", i), s.Options.Identity))(t)
		must.OK(t, list.Add(t.Context(), to, reason, "postmark"))
	}
	v.enters("suppress-email", "bob@example.com")
	v.reads("suppressions", "bob@example.com")
	v.looksRight("console-suppressions")
	for i := range suppression.PageSize {
		to := must.Get(address.Parse(fmt.Sprintf("c%d@example.com", i), s.Options.Identity))(t)
		must.OK(t, list.Add(t.Context(), to, suppression.HardBounce, "ses"))
	}
	v.click(`[aria-label="Remove bob@example.com"]`)
	v.reads("suppress-done", "bob@example.com was removed, for all reasons.")
	v.hasFocus("suppressions-title")
	v.isTrue(`document.getElementById("suppressions").rows.length === 500`)
	v.click("#show-suppressions")
	v.isTrue(`document.getElementById("suppressions").rows.length === 504 && document.getElementById("show-suppressions").hidden`)
	v.is(`[...document.getElementById("suppressions").rows].some((row) => row.textContent.includes("bob@"))`, "false")
	s.sent("alice@example.com", 0) // so that the next one would have to wait
	v.looksUp("Alice+y@example.com")
	v.reads("found-why", "Gets no email: manual since ")
	v.reads("found-why", ", until it is removed. Source: ticket 4711.")
	v.reads("announce", "Alice+y@example.com: Gets no email: manual since ")
	v.is(state, "no email, 1 of 1 used, 1 of 5 used, 1 of 10 used")
	v.click("#sign-out")
	v.is(`document.getElementById("suppressions").textContent + document.getElementById("suppress-done").textContent`, "")
}

// timeline is what happened to a mailbox, the newest first.
const timeline = `[...document.querySelectorAll("#timeline li")].map((one) => one.querySelector(".pill").textContent).join()`

// All that happened to a mailbox is one list beside its tiers: what was asked for it, what operators did, and what is on
// record from before. It goes on as it happens.
func TestConsole_Timeline_HasAllOfAMailbox(t *testing.T) {
	t.Parallel()
	s, v := newServer(t, nil), newVisitor(t)
	s.sent("alice@example.com", 3*time.Hour)
	s.sendCode("alice@example.com")
	s.sendCode("alice@example.com")
	s.post("/verify-code", fmt.Sprintf(`{"email":"alice@example.com","code":%q}`, s.wrongCode("alice@example.com")))
	v.signsIn(s)
	v.enters("suppress-email", "alice@example.com")
	v.reads("suppress-done", "gets no email")
	s.sendCode("alice@example.com")
	s.sendCode("bob@example.com")
	v.looksUp("alice@example.com")
	v.isTrue(timeline + ` === "suppressed,recipient suppressed,incorrect,quota-exceeded,sent,sent"`)
	v.reads("timeline", "mailbox: minute · wait ")
	v.is(`/^\d\d:\d\d:\d\d$/.test(document.querySelector("#timeline time").textContent) + document.querySelector("#timeline time").dateTime.slice(-1)`, "trueZ")
	v.looksRight("console-timeline", ".lanes .band")
	v.size(1280, 800)
	v.is(`document.querySelector("#timeline").getBoundingClientRect().left > document.querySelector("#lanes").getBoundingClientRect().right`, "true")
	s.post("/verify-code", fmt.Sprintf(`{"email":"alice@example.com","code":%q}`, s.wrongCode("alice@example.com"))) // shows by itself
	v.isTrue(timeline + ` === "incorrect,suppressed,recipient suppressed,incorrect,quota-exceeded,sent,sent"`)
	v.enters("reason", "ticket 4712")
	v.click("#reset-now")
	v.reads("timeline", "ticket 4712")
	v.isTrue(timeline + ` === "mailbox reset,incorrect,suppressed,recipient suppressed,incorrect,quota-exceeded,sent"`)

	bounced := must.Get(address.Parse("carol@example.com", s.Options.Identity))(t)
	must.OK(t, s.Options.Suppressions.Add(t.Context(), bounced, suppression.HardBounce, "postmark"))
	v.looksUp("carol@example.com")
	v.reads("timeline", "hard-bounce · postmark")
	v.is(timeline, "recipient suppressed")
	v.looksUp("dave@example.com")
	v.reads("timeline-note", "Nothing is on record.")
	v.is(timeline, "")
}
