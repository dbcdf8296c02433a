package web_test

import (
	"fmt"
	"slices"
	"testing"
)

// The sentence says which limit was reached and how long to wait: a clock where it is seen, and
// words where it is read aloud.
func TestCountdown_Words_SayWhyAndHowLong(t *testing.T) {
	p, v := newSite(t, beside)
	for _, tt := range []struct{ answer, shown, aloud string }{
		{sent(60_000, first, "one"), "One email a minute. Next in 1:00.", "One email a minute. Next in 1 minute."},
		{refused("hour", 750_000, second), "Five emails in an hour: limit reached. Next in 12:30.", "Five emails in an hour: limit reached. Next in 12 minutes, 30 seconds."},
		{refused("day", 86_399_001, first), "Ten emails in a day: limit reached. Next in 24:00:00.", "Ten emails in a day: limit reached. Next in 1 day."},
		{`{"wait_ms":2000,"limit":"short","limits":[{"name":"short","limit":1,"window_ms":30000}]}`, "One email every 30 seconds. Next in 0:02.", "One email every 30 seconds. Next in 2 seconds."},
		{`{"wait_ms":1000,"limit":"odd","limits":[{"name":"odd","limit":12,"window_ms":5400000}]}`, "12 emails in 90 minutes: limit reached. Next in 0:01.", "12 emails in 90 minutes: limit reached. Next in 1 second."},
		{`{"wait_ms":400,"limit":"quick","limits":[{"name":"quick","limit":3,"window_ms":400}]}`, "Three emails in 0.4 seconds: limit reached. Next in 0:01.", "Three emails in 0.4 seconds: limit reached. Next in 1 second."},
		{`{"wait_ms":3600000,"limit":"unknown"}`, "Next in 1:00:00.", " Next in 1 hour."},
	} {
		v.update(tt.answer)
		v.shows(tt.shown)
		if said := v.look().Said; said[len(said)-1] != tt.aloud {
			t.Errorf("said %q, want %q", said[len(said)-1], tt.aloud)
		}
	}
	v.element("reset()")
	p.shows(v, `<div lang="zh-CN">`+beside+`</div>`)
	v.update(sent(42_000, first, "one"))
	v.shows("每分钟限发一封邮件。 0:42后可再次发送。")
	v.update(refused("hour", 750_000, second))
	v.shows("1小时内最多 5 封邮件，已达上限。 12:30后可再次发送。")
	v.pass(750_101)
	if want, said := []string{"每分钟限发一封邮件。 42秒钟后可再次发送。", "1小时内最多 5 封邮件，已达上限。 12分钟30秒钟后可再次发送。", "现在可以再次发送。"}, v.look().Said; !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}

// A language is added once for all pages, and serves its regions; an attribute replaces a text
// of one element. Texts say which language they are in, and run as it does.
func TestCountdown_OtherLanguages_AreUsedWhereTheyAreSpoken(t *testing.T) {
	p, v := newSite(t, "")
	isIn := func(want string) {
		t.Helper()
		v.is(`Array.from(document.querySelector("mailgate-countdown").shadowRoot.querySelectorAll("[part=limit], [part=wait], [role=status]"), (part) => part.lang).join()`, want)
	}
	runs := func(want string) {
		t.Helper()
		v.is(`getComputedStyle(document.querySelector("mailgate-countdown").shadowRoot.querySelector("[part=wait]")).direction`, want)
	}
	p.shows(v, `<div lang="pl-PL" dir="rtl">`+beside+`</div>`)
	v.update(sent(60_000, first, ""))
	v.shows("One email a minute. Next in 1:00.")
	isIn("en,en,en")
	runs("ltr")
	v.run(`customElements.get("mailgate-countdown").texts.pl = {
		limit: ({ n, plural }) => n + " " + { one: "mail", few: "maile", many: "maili" }[plural] + ".", wait: "Za {time}.", end: "Już." }`)
	v.update(refused("hour", 2000, first))
	v.shows("5 maili. Za 0:02.")
	isIn("pl,pl,pl")
	v.element(`setAttribute("wait-text", "{time} {unknown} <b>{n}</b> \u05e2\u05d5\u05d3")`)
	v.element(`setAttribute("limit-text", "")`)
	v.update(sent(61_000, second, ""))
	v.shows("1:01 {unknown} <b>1</b> עוד")
	isIn(",,") // those words are the page's own
	v.element(`setAttribute("wait-text", "\u05e2\u05d5\u05d3 {time}")`)
	v.update(sent(62_000, first, ""))
	runs("rtl")
}

// The nearest lang attribute may be outside of the shadow tree that the element is in.
func TestCountdown_InAShadowTree_TakesTheLanguageOfItsHost(t *testing.T) {
	_, v := newSite(t, beside)
	for _, tt := range [][3]string{{"zh", "", "1:00后可再次发送。"}, {"en", "zh-CN", "1:00后可再次发送。"}, {"", "", "Next in 1:00."}} {
		v.run(fmt.Sprintf(`(() => {
			const host = document.body.appendChild(document.createElement("div"));
			const inner = host.attachShadow({ mode: "open" }).appendChild(document.createElement("div"));
			const element = inner.attachShadow({ mode: "open" }).appendChild(document.createElement("mailgate-countdown"));
			for (const [at, lang] of [[host, %q], [inner, %q]]) if (lang) at.lang = lang;
			element.update({ wait_ms: 60000 });
			window.inner = element;
		})()`, tt[0], tt[1]))
		v.is(`inner.shadowRoot.querySelector("[part=wait]").textContent`, tt[2])
		v.run("inner.reset()")
	}
}

// A screen reader hears the start, the end, and the answer to a press, and finds no time that is
// out of date. What is said aloud takes no room.
func TestCountdown_ScreenReader_HearsStartPressAndEnd(t *testing.T) {
	_, v := newSite(t, beside)
	const region = `document.querySelector("mailgate-countdown").shadowRoot.querySelector("[role=status]")`
	v.run(`(() => {
		const panel = document.body.appendChild(document.createElement("div"));
		panel.appendChild(document.createElement("p")).style.height = "5000px";
		panel.append(document.querySelector("mailgate-countdown"));
		Object.assign(panel.style, { height: "100px", overflow: "auto" });
	})()`)
	v.update(sent(60_000, first, "a-token"))
	v.is(`((words) => { words.selectNodeContents(`+region+`); return [words.getClientRects().length, document.documentElement.scrollHeight > innerHeight].join(); })(document.createRange())`, "1,false")
	v.pass(18_000)
	v.is(region+".textContent", "")
	v.click("#resend")
	v.pass(42_101)
	want := []string{"One email a minute. Next in 1 minute.", "Next in 42 seconds.", "You can request another email now."}
	if said := v.look().Said; !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
	v.is(`Array.from(document.querySelector("mailgate-countdown").shadowRoot.querySelectorAll("[role]"), (e) => e.role + " " + (e.ariaLive ?? "")).join()`, "timer ,status ") // a timer is silent, a status polite
	v.is(`document.querySelector("mailgate-countdown").offsetHeight`, "0")
}
