package web_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// holdQuestions keeps what the page asks back until letGo() is called, and counts it but for
// the figures and the mails that pages ask for by themselves.
const holdQuestions = `(() => {
	const ask = window.fetch;
	window.asked = 0;
	const gate = new Promise((open) => {
		window.letGo = () => {
			window.fetch = ask;
			open();
		};
	});
	window.fetch = async (path, ...rest) => {
		if (path.startsWith("/demo/mails")) return ask(path, ...rest);
		if (path !== "/admin/figures" || desk.hidden) asked++;
		await gate;
		return ask(path, ...rest);
	};
})()`

// press clicks a button whose question is held back, which may be another than the one that
// is busy then. That one has the focus and keeps it, for whoever goes on by keyboard, and
// asks nothing when it is clicked again.
func (tb *tab) press(button, busy string) {
	tb.t.Helper()
	tb.run(holdQuestions)
	tb.do(chromedp.Click(chromedp.CSS(button)))
	tb.until(button+" asks", func() bool { return get[int](tb, "asked") == 1 })
	tb.drawn() // that is when the browser takes the focus from what is disabled
	tb.hasTheFocus(busy)
	tb.do(chromedp.Click(chromedp.CSS(busy)))
	if got := get[string](tb, fmt.Sprintf(`document.querySelector(%q).ariaBusy + " " + asked`, busy)); got != "true 1" {
		tb.t.Errorf("%s is busy, and has asked so often: %s", busy, got)
	}
	tb.hasTheFocus(busy)
}

// comesFree lets the questions go, and waits until a button is as before.
func (tb *tab) comesFree(button string) {
	tb.t.Helper()
	tb.run("letGo()")
	tb.until(button+" is free", func() bool {
		return get[bool](tb, fmt.Sprintf(`(one => !one.disabled && !one.ariaBusy && !one.ariaDisabled)(document.querySelector(%q))`, button))
	})
}

func (tb *tab) hasTheFocus(button string) {
	tb.t.Helper()
	if !get[bool](tb, fmt.Sprintf(`document.activeElement === document.querySelector(%q)`, button)) {
		tb.t.Errorf("not %s has the focus, but %s", button, get[string](tb, `document.activeElement.outerHTML.slice(0, 60)`))
	}
}

// freedOfWork has a button begin a second work after it was freed of the first, and then the
// first end: which is not to free it of the second.
const freedOfWork = `import("/admin/console/busy.js").then(async ({ busy, free }) => {
	const ends = [];
	const begin = () => busy(enter, () => new Promise((end) => ends.push(end)));
	const first = begin();
	free(enter);
	const second = begin();
	ends[0]();
	await first;
	const between = enter.ariaBusy;
	ends[1]();
	await second;
	window.freed = between + " " + enter.ariaBusy;
})`

func busyButtons(t *testing.T, v *tab, d *desk) {
	v.do(chromedp.Navigate(d.URL + "/admin"))
	v.reads("gate-title", "Sign in")
	v.run(freedOfWork)
	v.until("the second work ends by itself", func() bool { return get[string](v, "window.freed ?? ''") == "true null" })
	v.run(`key.value = "` + opsKey + `"`)
	v.press("#enter", "#enter")
	v.comesFree("#enter")
	v.reads("mailbox-title", "Mailbox")

	v.run(`tiers.value = "day=2/24h"`)
	v.press("#try-now", "#try-now")
	v.comesFree("#try-now")
	v.reads("tried-sum", "0 mailboxes")
	v.hasTheFocus("#try-now")

	d.sent("carol@example.com", 0)
	v.types("email", "carol@example.com")
	v.reads("sends-title", "1 email on record")
	v.do(chromedp.Click(chromedp.CSS("#ask-reset")))
	v.reads("confirm-text", "1 email and the code attempts of carol@example.com")
	v.press("#reset-now", "#ask-reset")
	if text := v.text("confirm-text"); text != "" {
		t.Errorf("it asks once more: %q", text)
	}
	v.comesFree("#ask-reset")
	v.reads("sends-title", "0 emails on record")

	// Who signs out meanwhile finds it free when he is back.
	v.press("#try-now", "#try-now")
	v.do(chromedp.Click(chromedp.CSS("#sign-out")))
	v.reads("gate-title", "Sign in")
	if get[bool](v, `document.getElementById("try-now").ariaDisabled === "true"`) {
		t.Error("the button is busy for who signed in before")
	}
	v.comesFree("#try-now")
}
