package web_test

import (
	"fmt"
	"strings"
	"testing"
)

// A refusal without a token may be another mailbox's, unless it names the same moment. The token
// at hand must not shorten it.
func TestCountdown_AnotherMailboxsRefusal_KeepsItsWait(t *testing.T) {
	p, v := newSite(t, beside)
	p.says(200, still(30_000, first))
	v.update(sent(60_000, first, "a-token"))
	v.update(refused("minute", 31_000, first))
	v.isSeen()
	v.shows("One email a minute. Next in 0:30.")
	v.update(refused("hour", 3_000_000, second))
	v.isSeen()
	v.pass(1000)
	v.mustShow("Five emails in an hour: limit reached. Next in 49:59.")
	if p.asks() != 1 {
		t.Errorf("asked for %q", p.tokens())
	}
}

// Where another rule refuses, the limit of the mailbox that has the same name is not blamed.
func TestCountdown_AnotherRulesRefusal_BlamesNoTier(t *testing.T) {
	p, v := newSite(t, beside)
	v.update(fmt.Sprintf(`{"status":429,"rule":"client-ip","limit":"minute","wait_ms":41500,"retry_at":%q,"countdown":"a-token",
		"limits":[{"name":"minute","limit":1,"window_ms":60000,"remaining":1,"wait_ms":0}]}`, first))
	v.mustShow("Next in 0:42.")
	p.says(200, strings.Replace(still(40_000, first), "mailbox", "client-ip", 1))
	v.reload()
	v.shows("Next in 0:40.")
	v.update(sent(60_000, first, "b-token"))
	for rule, want := range map[string]string{"provider": "Next in 0:50.", "mailbox": "One email a minute. Next in 0:50."} {
		p.says(200, strings.Replace(still(50_000, second), "mailbox", rule, 1))
		v.isSeen()
		v.shows(want)
	}
}

// A replayed answer tells of an earlier moment, so the server is asked. An answer that was
// overtaken by a send is ignored.
func TestCountdown_OldAnswer_IsCheckedOrIgnored(t *testing.T) {
	p, v := newSite(t, beside)
	p.says(200, still(5000, first))
	v.update(strings.Replace(sent(60_000, first, "a-token"), "{", `{"replayed":true,`, 1))
	v.shows("One email a minute. Next in 0:05.")
	v.update(strings.Replace(sent(40_000, second, ""), "{", `{"replayed":true,`, 1)) // no server to ask
	v.mustShow("One email a minute. Next in 0:40.")
	v.update(sent(60_000, first, "b-token"))
	goOn := p.hesitates()
	p.says(200, still(1000, first))
	v.run(`window.asked = document.querySelector("mailgate-countdown").refresh()`)
	v.until("it asks", func() bool { return p.tokens() == "a-token b-token" })
	v.update(sent(60_000, second, "c-token"))
	goOn()
	get[bool](v, "asked.then(() => true)")
	v.mustShow("One email a minute. Next in 1:00.")
}

func TestCountdown_InvalidAnswer_ChangesNothing(t *testing.T) {
	p, v := newSite(t, beside)
	for _, answer := range []string{"null", "undefined", "{}", `"no"`, "{wait_ms: -1}", "{wait_ms: NaN}", "{wait_ms: Infinity}", `{wait_ms: "60000"}`, "{wait_ms: null}", "{status: 503}"} {
		v.is("document.querySelector('mailgate-countdown').update("+answer+")", "false")
		v.mustShow("")
	}
	v.update(sent(60_000, first, "a-token"))
	for i, answer := range []string{"null", "[]", "no JSON", `{"wait_ms":-1}`, `{"wait_ms":1e999}`, `{"wait_ms":"0"}`} {
		p.says(200, answer)
		v.refreshed()
		v.mustShow("One email a minute. Next in 1:00.")
		if p.asks() != i+1 {
			t.Fatalf("asked %d times", p.asks())
		}
	}
	v.run(`localStorage["mailgate-countdown:resend"] = '{"wait":"x","until":{}}'`)
	v.reload()
	v.mustShow("")
}

// A server that renders says all in attributes. The page may be an old copy, so the server is
// asked, and what it says is remembered for a page without them.
func TestCountdown_RenderedAttributes_AreChecked(t *testing.T) {
	p, v := newSite(t, "")
	p.says(200, strings.Replace(still(59_000, first), "minute", "hour", 1))
	p.shows(v, with(`src="/countdown/a-token" wait-ms="60000" limit="hour" limits='`+tiers+`'`))
	v.shows("Five emails in an hour: limit reached. Next in 0:59.")
	if s := v.look(); s.count("start") != 1 || len(s.Said) != 1 || p.asks() != 1 {
		t.Errorf("asked for %q, saw %+v", p.tokens(), s)
	}
	p.shows(v, beside)
	v.shows("Five emails in an hour: limit reached. Next in 0:59.")
	p.says(503, "{}")
	p.shows(v, with(`src="/countdown/b-token"`)) // this page does not know how long
	v.isTrue("!look().held")
	p.says(200, still(30_000, second))
	v.pass(2000)
	v.shows("Next in 0:30.")
}

// Frameworks write attributes late, several at once, or as properties of an element that is not
// defined yet.
func TestCountdown_FrameworkAttributes_AreOneAnswer(t *testing.T) {
	p, v := newSite(t, beside)
	v.run(`Object.assign(document.querySelector("mailgate-countdown"), {src: "/countdown/a-token", limit: "minute", limits: ` + tiers + `, waitMs: 60000})`)
	v.shows("One email a minute. Next in 1:00.")
	v.pass(10_000)
	v.element(`setAttribute("src", "/countdown/b-token")`) // the next send, with the same wait
	v.shows("One email a minute. Next in 1:00.")
	if s := v.look(); s.count("start") != 2 || p.asks() != 0 {
		t.Errorf("asked for %q, saw %+v", p.tokens(), s)
	}
	p.says(200, still(5000, first))
	v.element(`removeAttribute("wait-ms")`)
	v.shows("One email a minute. Next in 0:05.")
	v.element("reset()")

	for _, attribute := range []string{"for", "name"} {
		p.shows(v, beside)
		v.update(sent(60_000, first, "a-token"))
		p.says(200, still(42_000, first))
		p.shows(v, strings.Replace(beside, ` for="resend"`, "", 1))
		v.element(fmt.Sprintf(`setAttribute(%q, "resend")`, attribute))
		v.element(`setAttribute("for", "resend")`)
		v.shows("One email a minute. Next in 0:42.")
		v.element("reset()")
	}

	v.run(`(() => {
		window.early = document.createElement("later-countdown");
		Object.assign(early, { waitMs: 5000, limits: ` + tiers + `, limit: "hour" });
		document.body.append(early);
		customElements.define("later-countdown", class extends customElements.get("mailgate-countdown") {});
	})()`)
	v.is(`early.shadowRoot.querySelector("[part=text]").textContent`, "Five emails in an hour: limit reached. Next in 0:05.")
}

// A listener may update or reset the countdown during its event.
func TestCountdown_Listener_MayUpdateOrReset(t *testing.T) {
	_, v := newSite(t, beside)
	v.run(`document.addEventListener("mailgate-tick", ({ target }) => target.reset(), { once: true })`)
	v.update(sent(60_000, first, ""))
	v.mustShow("")
	if s := v.look(); s.count("start") != 0 || len(s.Said) > 0 {
		t.Errorf("after a reset: %v, said %q", s.Events, s.Said)
	}
	v.reload()
	v.run(`document.addEventListener("mailgate-tick", ({ target, detail }) => {
		if (detail.seconds === 30) target.update({ wait_ms: 20000, limit: "minute" });
		if (detail.seconds === 10) target.reset();
	})`)
	v.update(sent(60_000, first, ""))
	v.pass(35_000)
	v.mustShow("Next in 0:15.")
	v.pass(5000)
	v.mustShow("")
	if n := v.look().count("tick"); n != 31+11 {
		t.Errorf("%d ticks: %v", n, v.look().Events)
	}
}
