package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/mailgate/mailgate/internal/must"
)

// The sentence says which limit was reached and how long to wait: a clock where it is seen, and
// words where it is read aloud.
func TestCountdown_Words_SayWhyAndHowLong(t *testing.T) {
	t.Parallel()
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

// A language is added once for all pages, and serves its regions; an attribute replaces a text of
// one element. The nearest lang attribute may be outside of the tree that the element is in.
func TestCountdown_OtherLanguages_AreUsedWhereTheyAreSpoken(t *testing.T) {
	t.Parallel()
	p, v := newSite(t, "")
	isIn := func(want string) {
		t.Helper()
		v.is(`document.querySelector("mailgate-countdown").shadowRoot.querySelector("[part=wait]").lang`, want)
	}
	p.shows(v, `<div lang="pl-PL">`+beside+`</div>`)
	v.update(sent(60_000, first, ""))
	v.shows("One email a minute. Next in 1:00.")
	isIn("en")
	v.run(`customElements.get("mailgate-countdown").texts.pl = {
		limit: ({ n, plural }) => n + " " + { one: "mail", few: "maile", many: "maili" }[plural] + ".", wait: "Za {time}.", end: "Już." }`)
	v.update(refused("hour", 2000, first))
	v.shows("5 maili. Za 0:02.")
	isIn("pl")
	v.element(`setAttribute("wait-text", "{time} {unknown} <b>{n}</b>")`)
	v.element(`setAttribute("limit-text", "")`)
	v.update(sent(61_000, second, ""))
	v.shows("1:01 {unknown} <b>1</b>")
	isIn("") // those words are the page's own
	v.run(`(() => {
		const host = Object.assign(document.body.appendChild(document.createElement("div")), { lang: "zh-CN" });
		window.inner = host.attachShadow({ mode: "open" }).appendChild(document.createElement("mailgate-countdown"));
		inner.update({ wait_ms: 60000 });
	})()`)
	v.is(`inner.shadowRoot.querySelector("[part=wait]").textContent`, "1:00后可再次发送。")
}

// A screen reader hears the start, the end, and the answer to a press, and finds no time that is
// out of date.
func TestCountdown_ScreenReader_HearsStartPressAndEnd(t *testing.T) {
	t.Parallel()
	_, v := newSite(t, beside)
	const region = `document.querySelector("mailgate-countdown").shadowRoot.querySelector("[role=status]")`
	v.update(sent(60_000, first, "a-token"))
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

// The held button keeps the focus, is not disabled, and does nothing by mouse, key or Enter in
// its form.
func TestCountdown_HeldButton_DoesNothing(t *testing.T) {
	t.Parallel()
	_, v := newSite(t, beside)
	presses := func(when string, want int) {
		t.Helper()
		v.click("#resend")
		v.press(kb.Enter, " ")
		v.run(`document.getElementById("code").focus()`)
		v.press(kb.Enter)
		v.run(`document.getElementById("resend").focus()`)
		if s := v.look(); s.Clicks != want || s.Submits != want || !s.Focused || s.Disabled {
			t.Errorf("%s: %+v", when, s)
		}
	}
	presses("before the wait", 4)
	v.update(sent(60_000, first, "a-token"))
	presses("during the wait", 4)
	v.pass(60_101)
	presses("after the wait", 8)
}

// The button may be inside the element, in a closed shadow tree, or be replaced meanwhile.
func TestCountdown_ButtonAnywhere_IsHeld(t *testing.T) {
	t.Parallel()
	p, v := newSite(t, "")
	p.shows(v, `<mailgate-countdown><button id="resend" type="button">Send again</button></mailgate-countdown>`)
	v.update(sent(60_000, first, ""))
	v.click("#resend")
	v.mustShow("One email a minute. Next in 1:00.")
	v.pass(60_101)
	v.click("#resend")
	if s := v.look(); s.Clicks != 1 || s.Held {
		t.Errorf("inside: %+v", s)
	}
	p.shows(v, beside)
	v.update(sent(60_000, first, ""))
	v.run(`document.getElementById("resend").replaceWith(Object.assign(document.createElement("button"), {id: "resend", textContent: "New"}))`)
	v.click("#resend")
	v.pass(1000)
	if s := v.look(); !s.Held || s.Submits != 0 {
		t.Errorf("replaced: %+v", s)
	}
	v.run(`(() => {
		const root = document.body.appendChild(document.createElement("div")).attachShadow({ mode: "closed" });
		window.button = root.appendChild(Object.assign(document.createElement("button"), { id: "inner" }));
		const element = root.appendChild(document.createElement("mailgate-countdown"));
		element.htmlFor = "inner";
		element.update({ wait_ms: 60000 });
		window.through = 0;
		button.addEventListener("click", () => window.through++);
	})()`)
	v.run("button.click()")
	v.is("through", "0")
	v.pass(60_101)
	v.run("button.click()")
	v.is("through", "1")
}

// reset() releases the button and forgets the wait; removing the element releases it until the
// element is back. A copy of a waiting page holds nothing.
func TestCountdown_ResetRemovedOrCopied_ReleasesTheButton(t *testing.T) {
	t.Parallel()
	p, v := newSite(t, beside)
	v.update(sent(60_000, first, "a-token"))
	v.element("reset()")
	v.mustShow("")
	v.reload()
	v.mustShow("")
	v.update(sent(60_000, first, "a-token"))
	p.says(200, still(58_000, first))
	v.run(`(window.gone = document.querySelector("mailgate-countdown")).remove()`)
	v.is(`document.getElementById("resend").hasAttribute("aria-disabled")`, "false")
	v.run("document.body.append(gone)")
	v.shows("One email a minute. Next in 0:58.")
	v.run("window.copy = document.body.cloneNode(true)")
	v.pass(58_101)
	v.run("document.body.replaceWith(copy)")
	v.is(`look().held || document.querySelector("mailgate-countdown").hasAttribute("waiting")`, "false")
}

// A held button is faint without any style of the page's, in a tree of its own too. Any rule of the page's wins, and no
// other button changes.
func TestCountdown_HeldButton_LooksHeld(t *testing.T) {
	t.Parallel()
	p, v := newSite(t, "")
	p.shows(v, with(`wait-ms="60000"`)+`<button id="other" aria-disabled="true">Other</button><div id="host"></div>`)
	v.run(`(() => { const tree = host.attachShadow({ mode: "open" });
		const countdown = tree.appendChild(document.createElement("mailgate-countdown"));
		globalThis.inner = countdown.appendChild(document.createElement("button"));
		countdown.waitMs = 60000 })()`)
	v.is(`getComputedStyle(resend).opacity`, "0.5")
	v.is(`getComputedStyle(inner).opacity`, "0.5")
	v.is(`getComputedStyle(other).opacity`, "1")
	v.run(`(() => { const own = new CSSStyleSheet(); own.replaceSync("button { opacity: .9 }"); document.adoptedStyleSheets.unshift(own) })()`)
	v.is(`getComputedStyle(resend).opacity`, "0.9")
	v.run(`document.adoptedStyleSheets.shift()`)
	v.pass(60_101)
	v.is(`getComputedStyle(resend).opacity`, "1")
}

// The sample of docs/countdown.md holds the button for the address that was mailed, and not for a
// corrected one.
func TestCountdownSample_AddressCorrected_FreesTheButton(t *testing.T) {
	t.Parallel()
	s, v := newServer(t, nil), newVisitor(t)
	text := strings.ReplaceAll(string(must.Have(os.ReadFile("../../docs/countdown.md"))), "https://mailgate.example", s.URL)
	sample := regexp.MustCompile("(?s)```html\n(<script type=\"module\" .*?)```\n\n```js\n(.*?)```").FindStringSubmatch(text)
	if sample == nil {
		t.Fatal("docs/countdown.md has no sample of the countdown")
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/sign-up" {
			fmt.Fprint(w, s.sendCode(r.FormValue("email")))
			return
		}
		fmt.Fprintf(w, `<!doctype html><link rel="icon" href="data:,">%s<script>%s</script>`, sample[1], sample[2])
	}))
	t.Cleanup(page.Close)
	v.visit(page.URL)
	v.types("email", "typo@example.com")
	v.run("resend.click()")
	v.isTrue(`resend.ariaDisabled === "true"`)
	v.types("email", "right@example.com")
	v.isTrue(`resend.ariaDisabled !== "true"`)
}
