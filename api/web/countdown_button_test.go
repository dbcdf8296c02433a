package web_test

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// The held button keeps the focus, is not disabled, and does nothing by mouse, key or Enter in
// its form.
func TestCountdown_HeldButton_DoesNothing(t *testing.T) {
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
	p, v := newSite(t, "")
	p.shows(v, around)
	v.update(sent(60_000, first, ""))
	v.click("#resend")
	v.mustShow("One email a minute. Next in 1:00.")
	v.pass(60_101)
	v.click("#resend")
	if s := v.look(); s.Clicks != 1 || s.Held {
		t.Errorf("inside: %+v", s)
	}

	p.shows(v, beside)
	v.run(`window.old = document.getElementById("resend")`)
	v.run(`old.remove()`)
	v.update(sent(60_000, first, ""))
	v.run(`document.querySelector("form").append(Object.assign(document.createElement("button"), {id: "resend", textContent: "New"}))`)
	v.click("#resend")
	v.pass(1000)
	if s := v.look(); !s.Held || s.Submits != 0 {
		t.Errorf("replaced: %+v", s)
	}
	v.run(`document.getElementById("resend").replaceWith(old)`)
	v.pass(1000)
	v.pass(58_101)
	v.mustShow("")

	v.run(`(() => {
		const root = document.body.appendChild(document.createElement("div")).attachShadow({ mode: "closed" });
		const button = root.appendChild(Object.assign(document.createElement("button"), { id: "inner" }));
		const element = root.appendChild(document.createElement("mailgate-countdown"));
		element.htmlFor = "inner";
		element.update({ wait_ms: 60000 });
		button.addEventListener("click", () => window.through++);
		Object.assign(window, { inner: { root, button, element }, through: 0 });
	})()`)
	for _, tt := range [][2]string{{"", "0"}, {"inner.element.remove()", "1"}, {"inner.root.append(inner.element)", "1"}, {"time.pass(60101)", "2"}} {
		v.run("(() => {" + tt[0] + "})()")
		v.run("inner.button.click()")
		v.is("through", tt[1])
	}
}

// reset() lets the button go and forgets the wait; so does taking the element away, until it is
// back. A copy of a waiting page holds nothing.
func TestCountdown_ResetRemovedOrCopied_LetsTheButtonGo(t *testing.T) {
	p, v := newSite(t, beside)
	v.update(sent(60_000, first, "a-token"))
	v.element("reset()")
	v.mustShow("")
	v.reload()
	v.mustShow("")
	v.update(sent(60_000, first, "a-token"))
	v.pass(1000)
	p.says(200, still(58_000, first))
	v.run(`(window.gone = document.querySelector("mailgate-countdown")).remove()`)
	v.is(`document.getElementById("resend").hasAttribute("aria-disabled")`, "false")
	v.run("document.body.append(gone)")
	v.shows("One email a minute. Next in 0:58.")
	if s := v.look(); s.count("end") != 0 || p.asks() != 1 {
		t.Errorf("asked for %q, saw %+v", p.tokens(), s)
	}
	for _, attributes := range []string{"", `mailbox="alice@example.com"`} {
		p.shows(v, with(attributes))
		v.update(sent(60_000, first, ""))
		v.run("window.copy = document.body.cloneNode(true)")
		v.pass(60_101)
		v.run("document.body.replaceWith(copy)")
		v.is(`look().held || document.querySelector("mailgate-countdown").hasAttribute("waiting")`, "false")
	}
}
