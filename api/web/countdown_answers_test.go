package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// A 429 that comes without a token may be another mailbox's: the token at hand must not
// shorten its wait. One that names the moment that is known is the same mailbox's.
func anotherMailboxsRefusal(t *testing.T, v *tab, p *player) {
	v.visit(p)
	p.says(200, still(30_000, first))
	v.update(sent(60_000, first, "a-token"))
	v.update(refused("minute", 31_000, first))
	v.comesBack()
	v.shows("One email a minute. Next in 0:30.")
	v.update(refused("hour", 3_000_000, second))
	v.comesBack()
	v.pass(1000)
	v.mustShow("Five emails in an hour: limit reached. Next in 49:59.")
	if p.asks() != 1 {
		t.Errorf("asked for %q", p.questions())
	}
}

// The token knows how long another rule says no, so a visitor's clock is not believed about
// that either. The limits of the answer are the mailbox's, and the one that has the name of
// the other rule's is not to blame.
func anotherRulesRefusal(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.update(fmt.Sprintf(`{"status":429,"rule":"client-ip","limit":"minute","wait_ms":41500,"retry_at":%q,"countdown":"a-token",
		"limits":[{"name":"minute","limit":1,"window_ms":60000,"remaining":1,"wait_ms":0}]}`, first))
	v.mustShow("Next in 0:42.")
	v.setClock(3_600_000)
	p.says(200, strings.Replace(still(40_000, first), "mailbox", "client-ip", 1))
	v.do(chromedp.Reload())
	v.shows("Next in 0:40.")
	if asked := p.questions(); asked != "a-token" {
		t.Errorf("asked for %q", asked)
	}
	v.update(sent(60_000, first, "b-token"))
	for _, tt := range []struct{ rule, want string }{
		{"provider", "Next in 0:50."}, {"mailbox", "One email a minute. Next in 0:50."},
	} {
		p.says(200, strings.Replace(still(50_000, second), "mailbox", tt.rule, 1))
		v.comesBack()
		v.shows(tt.want)
	}
}

// An answer that was given again under an Idempotency-Key tells of an earlier moment. How
// long it is now the server knows; where there is nobody to ask it is late, never early.
func anAnswerGivenAgain(t *testing.T, v *tab, p *player) {
	v.visit(p)
	p.says(200, still(5000, first))
	v.update(strings.Replace(sent(60_000, first, "a-token"), "{", `{"replayed":true,`, 1))
	v.shows("One email a minute. Next in 0:05.")
	if p.questions() != "a-token" {
		t.Errorf("asked for %q", p.questions())
	}
	v.update(strings.Replace(sent(40_000, second, ""), "{", `{"replayed":true,`, 1)) // nobody to ask
	v.mustShow("One email a minute. Next in 0:40.")
}

// An answer that was on its way when a mail was sent is out of date.
func anAnswerOvertaken(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.update(sent(60_000, first, "a-token"))
	v.pass(59_000)
	goOn := p.hesitates()
	p.says(200, still(1000, first))
	v.run(`window.asked = document.querySelector("mailgate-countdown").refresh()`)
	v.until("it asks", func() bool { return p.asks() == 1 })
	v.update(sent(60_000, second, "b-token"))
	goOn()
	get[bool](v, "asked.then(() => true)")
	v.mustShow("One email a minute. Next in 1:00.")
}

func answersThatAreNone(t *testing.T, v *tab, p *player) {
	v.visit(p)
	for _, answer := range []string{"null", "undefined", "{}", `"no"`, "{wait_ms: -1}", "{wait_ms: NaN}", "{wait_ms: Infinity}", `{wait_ms: "60000"}`, "{wait_ms: null}", "{status: 503}"} {
		if get[bool](v, "document.querySelector('mailgate-countdown').update("+answer+")") {
			t.Errorf("took %s", answer)
		}
		v.mustShow("")
	}
	v.update(sent(60_000, first, "a-token"))
	for i, answer := range []string{"null", "[]", "no JSON", `{"wait_ms":-1}`, `{"wait_ms":1e999}`, `{"wait_ms":"0"}`} {
		p.says(200, answer)
		get[bool](v, `document.querySelector("mailgate-countdown").refresh().then(() => true)`)
		v.mustShow("One email a minute. Next in 1:00.")
		if p.asks() != i+1 {
			t.Fatalf("asked %d times", p.asks())
		}
	}
	v.run(`localStorage["mailgate-countdown:resend"] = '{"wait":"x","until":{}}'`)
	v.do(chromedp.Reload())
	v.mustShow("")
}

// A server that renders can say all in attributes; the page may be an old one, so the
// server is asked.
func aPageThatComesWithTheWait(t *testing.T, v *tab, p *player) {
	p.body = with(`src="/countdown/a-token" wait-ms="60000" limit="hour" limits='` + tiers + `'`)
	p.says(200, strings.Replace(still(59_000, first), "minute", "hour", 1))
	v.visit(p)
	v.shows("Five emails in an hour: limit reached. Next in 0:59.")
	if s := v.look(); s.count("start") != 1 || len(s.Said) != 1 || p.asks() != 1 {
		t.Errorf("asked for %q, saw %+v", p.questions(), s)
	}
	p.body = beside // the next page knows nothing, and remembers
	v.visit(p)
	v.shows("Five emails in an hour: limit reached. Next in 0:59.")

	p.body = with(`src="/countdown/b-token"`) // nor does this one know how long
	p.says(503, "{}")
	v.visit(p)
	v.until("it lets the button go", func() bool { return !v.look().Held })
	v.forgive()
	p.says(200, still(30_000, second))
	v.pass(2000)
	v.shows("Next in 0:30.")
	p.body = beside
	v.visit(p)
	v.shows("Next in 0:30.")
	v.until("each of its pages has asked", func() bool { return strings.HasSuffix(p.questions(), " b-token b-token b-token") })
}

// Frameworks write attributes; those that change together are one answer.
func attributesThatChange(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.run(`Object.assign(document.querySelector("mailgate-countdown"), {src: "/countdown/a-token", limit: "minute", limits: ` + tiers + `, waitMs: 60000})`)
	v.shows("One email a minute. Next in 1:00.")
	v.pass(10_000)
	v.element(`setAttribute("src", "/countdown/b-token")`) // the next send, with the same wait
	v.shows("One email a minute. Next in 1:00.")
	if s := v.look(); s.count("start") != 2 || p.asks() != 0 {
		t.Errorf("asked for %q, saw %+v", p.questions(), s)
	}
	p.says(200, still(5000, first))
	v.element(`removeAttribute("wait-ms")`)
	v.shows("One email a minute. Next in 0:05.")
	if p.questions() != "b-token" {
		t.Errorf("asked for %q", p.questions())
	}
}

func propertiesSetTooEarly(t *testing.T, v *tab, p *player) {
	p.body = ""
	v.visit(p)
	v.run(`(() => {
		const early = document.createElement("later-countdown");
		early.waitMs = 5000;
		early.limits = ` + tiers + `;
		early.limit = "hour";
		document.body.append(early);
		customElements.define("later-countdown", class extends customElements.get("mailgate-countdown") {});
		window.early = early;
	})()`)
	if text := get[string](v, `early.shadowRoot.querySelector("[part=text]").textContent`); text != "Five emails in an hour: limit reached. Next in 0:05." {
		t.Errorf("it shows %q", text)
	}
}

// A framework may write attributes when the element is in the page already. Those that it
// remembers by bring back what is waited for then.
func attributesThatComeLate(t *testing.T, v *tab, p *player) {
	for _, attribute := range []string{"for", "name"} {
		p.body = beside
		v.visit(p)
		v.update(sent(60_000, first, "a-token"))
		p.says(200, still(42_000, first))
		p.body = strings.Replace(beside, ` for="resend"`, "", 1)
		v.visit(p)
		v.element(fmt.Sprintf(`setAttribute(%q, "resend")`, attribute))
		v.element(`setAttribute("for", "resend")`)
		v.shows("One email a minute. Next in 0:42.")
		v.element("reset()")
	}
	v.update(sent(60_000, first, "b-token"))
	v.element(`setAttribute("name", "another")`)
	v.mustShow("One email a minute. Next in 1:00.")
}

// Whoever hears an event may say what is new at once; time does not run twice as fast.
func anAnswerFromAListener(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.run(`document.addEventListener("mailgate-tick", ({ target, detail }) => {
		if (detail.seconds === 30) target.update({ wait_ms: 50000, limit: "minute" });
		if (detail.seconds === 10) target.reset();
	})`)
	v.update(sent(60_000, first, ""))
	v.pass(35_000)
	v.mustShow("Next in 0:45.")
	v.pass(5000)
	v.mustShow("Next in 0:40.")
	if n := v.look().count("tick"); n != 31+11 {
		t.Errorf("%d ticks: %v", n, v.look().Events)
	}
}

// Whoever hears the first second of a wait may say that it is none, or another.
func anAnswerFromTheFirstTick(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.run(`document.addEventListener("mailgate-tick", ({ target }) => target.reset(), { once: true })`)
	v.update(sent(60_000, first, ""))
	v.mustShow("")
	if s := v.look(); s.count("start") != 0 || len(s.Said) > 0 {
		t.Errorf("of what was reset: %v, said %q", s.Events, s.Said)
	}
	v.run(`document.addEventListener("mailgate-tick", ({ target }) => target.update({ wait_ms: 30000 }), { once: true })`)
	v.update(sent(60_000, first, ""))
	v.mustShow("Next in 0:30.")
	if s := v.look(); s.count("start") != 1 || len(s.Said) != 1 {
		t.Errorf("of what was updated: %v, said %q", s.Events, s.Said)
	}
	v.do(chromedp.Reload())
	v.mustShow("Next in 0:30.")
}
