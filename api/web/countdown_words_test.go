package web_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

func saysWhyInEnglish(t *testing.T, v *tab, p *player) {
	v.visit(p)
	for _, tt := range []struct{ answer, want, aloud string }{
		{sent(60_000, first, "one"), "One email a minute. Next in 1:00.", "One email a minute. Next in 1 minute."},
		{refused("hour", 750_000, second), "Five emails in an hour: limit reached. Next in 12:30.", "Five emails in an hour: limit reached. Next in 12 minutes, 30 seconds."},
		{refused("day", 86_399_001, first), "Ten emails in a day: limit reached. Next in 24:00:00.", "Ten emails in a day: limit reached. Next in 1 day."},
		{`{"wait_ms":2000,"limit":"short","limits":[{"name":"short","limit":1,"window_ms":30000}]}`, "One email every 30 seconds. Next in 0:02.", "One email every 30 seconds. Next in 2 seconds."},
		{`{"wait_ms":1000,"limit":"odd","limits":[{"name":"odd","limit":12,"window_ms":5400000}]}`, "12 emails in 90 minutes: limit reached. Next in 0:01.", "12 emails in 90 minutes: limit reached. Next in 1 second."},
		{`{"wait_ms":400,"limit":"brief","limits":[{"name":"brief","limit":1,"window_ms":400}]}`, "One email every 0.4 seconds. Next in 0:01.", "One email every 0.4 seconds. Next in 1 second."},
		{`{"wait_ms":400,"limit":"quick","limits":[{"name":"quick","limit":3,"window_ms":400}]}`, "Three emails in 0.4 seconds: limit reached. Next in 0:01.", "Three emails in 0.4 seconds: limit reached. Next in 1 second."},
		{`{"wait_ms":3600000,"limit":"unheard of"}`, "Next in 1:00:00.", " Next in 1 hour."},
	} {
		v.update(tt.answer)
		v.shows(tt.want)
		if said := v.look().Said; said[len(said)-1] != tt.aloud {
			t.Errorf("said %q, want %q", said[len(said)-1], tt.aloud)
		}
	}
}

func saysWhyInChinese(t *testing.T, v *tab, p *player) {
	p.body = `<div lang="zh-CN">` + beside + `</div>`
	v.visit(p)
	for _, tt := range []struct{ answer, want, aloud string }{
		{sent(42_000, first, "one"), "每分钟限发一封邮件。 0:42后可再次发送。", "每分钟限发一封邮件。 42秒钟后可再次发送。"},
		{refused("hour", 750_000, second), "1小时内最多 5 封邮件，已达上限。 12:30后可再次发送。", "1小时内最多 5 封邮件，已达上限。 12分钟30秒钟后可再次发送。"},
	} {
		v.update(tt.answer)
		v.shows(tt.want)
		if said := v.look().Said; said[len(said)-1] != tt.aloud {
			t.Errorf("said %q, want %q", said[len(said)-1], tt.aloud)
		}
	}
	v.pass(750_101)
	v.shows("")
	if said := v.look().Said; said[len(said)-1] != "现在可以再次发送。" {
		t.Errorf("said %q at the end", said[len(said)-1])
	}
}

// Another language is added once for all; an attribute is for one element.
func saysItInOtherWords(t *testing.T, v *tab, p *player) {
	p.body = `<div lang="pl">` + beside + `</div>`
	v.visit(p)
	v.update(sent(60_000, first, "none"))
	v.shows("One email a minute. Next in 1:00.")
	v.isIn("en,en,en")
	v.run(`customElements.get("mailgate-countdown").texts.pl = {
		limit: ({ n, plural }) => n + " " + { one: "mail", few: "maile", many: "maili" }[plural] + ".",
		wait: "Za {time}.", end: "Już." }`)
	v.update(refused("hour", 2000, first))
	v.shows("5 maili. Za 0:02.")
	v.isIn("pl,pl,pl")
	v.update(sent(61_000, second, "one"))
	v.shows("1 mail. Za 1:01.")
	v.element(`setAttribute("wait-text", "{time} {unknown} <b>{n}</b>")`)
	v.element(`setAttribute("limit-text", "")`)
	v.update(sent(60_000, first, "two"))
	v.shows("1:00 {unknown} <b>1</b>")
	v.isIn(",,pl") // those words are the page's; what was said is said
}

// Who has words for a kind of a language is told in those, wherever it is spoken.
func theNearestLanguage(t *testing.T, v *tab, p *player) {
	p.body = `<div lang="zh-Hant-TW">` + beside + `</div>`
	v.visit(p)
	v.update(sent(60_000, first, "none"))
	v.shows("每分钟限发一封邮件。 1:00后可再次发送。")
	v.run(`customElements.get("mailgate-countdown").texts["zh-hant"] = { limit: "每分鐘一封。", wait: "{time}後可再次傳送。", end: "可以再次傳送了。" }`)
	v.update(sent(90_000, second, "one"))
	v.shows("每分鐘一封。 1:30後可再次傳送。")
	v.isIn("zh-hant,zh-hant,zh-hant")
}

// isIn checks what language its parts say that they are in: why, how long, and what is
// said aloud.
func (tb *tab) isIn(want string) {
	tb.t.Helper()
	if got := get[string](tb, `Array.from(document.querySelector("mailgate-countdown").shadowRoot.querySelectorAll("[part=limit], [part=wait], [role=status]"), (part) => part.lang).join()`); got != want {
		tb.t.Errorf("the words say that they are in %q, want %q", got, want)
	}
}

// A screen reader hears the start, the end, and the answer to a press. Not every second.
func whatIsSaidAloud(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.update(sent(60_000, first, "a-token"))
	v.pass(18_000)
	// Who reads on with the arrow keys comes by, and finds no time of a while ago.
	if said := get[string](v, `document.querySelector("mailgate-countdown").shadowRoot.querySelector("[role=status]").textContent`); said != "" {
		t.Errorf("18 s later it still says %q", said)
	}
	v.do(chromedp.Click(chromedp.CSS("#resend")))
	v.pass(42_101)
	want := []string{"One email a minute. Next in 1 minute.", "Next in 42 seconds.", "You can request another email now."}
	if said := v.look().Said; !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
	tree := get[string](v, `Array.from(document.querySelector("mailgate-countdown").shadowRoot.querySelectorAll("[role]"), (e) => e.role + " " + (e.ariaLive ?? "")).join()`)
	if tree != "timer ,status " { // a timer is silent of itself, a status polite
		t.Errorf("roles: %q", tree)
	}
}

// The words run as their own language does, whichever way the page runs.
func whichWayTheWordsRun(t *testing.T, v *tab, p *player) {
	p.body = `<div lang="he" dir="rtl">` + beside + `</div>`
	v.visit(p)
	runs := func(want string) {
		t.Helper()
		if got := get[string](v, `getComputedStyle(document.querySelector("mailgate-countdown").shadowRoot.querySelector("[part=wait]")).direction`); got != want {
			t.Errorf("the words run %s", got)
		}
	}
	v.update(sent(60_000, first, "none"))
	v.shows("One email a minute. Next in 1:00.")
	runs("ltr")
	v.element(`setAttribute("limit-text", "")`)
	v.element(`setAttribute("wait-text", "{time} \u05e2\u05d5\u05d3")`)
	v.update(sent(61_000, first, "one"))
	runs("rtl")
}

// The nearest lang attribute may be outside of the tree that the element is in.
func theLanguageOfAHost(t *testing.T, v *tab, p *player) {
	v.visit(p)
	for _, tt := range []struct{ outer, inner, want string }{
		{"zh", "", "1:00后可再次发送。"}, {"en", "zh-CN", "1:00后可再次发送。"}, {"", "", "Next in 1:00."},
	} {
		v.run(fmt.Sprintf(`(() => {
			const host = document.body.appendChild(document.createElement("div"));
			const inner = host.attachShadow({ mode: "open" }).appendChild(document.createElement("div"));
			const element = inner.attachShadow({ mode: "open" }).appendChild(document.createElement("mailgate-countdown"));
			for (const [at, lang] of [[host, %q], [inner, %q]]) if (lang) at.lang = lang;
			element.update({ wait_ms: 60000 });
			window.inner = element;
		})()`, tt.outer, tt.inner))
		if got := get[string](v, `inner.shadowRoot.querySelector("[part=wait]").textContent`); got != tt.want {
			t.Errorf("below %q and %q it says %q", tt.outer, tt.inner, got)
		}
		v.run("inner.reset()")
	}
}
