package web_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The button keeps the focus, is there for a screen reader, and does nothing.
func theButton(t *testing.T, v *tab, p *player) {
	v.visit(p)
	press := func() {
		v.do(chromedp.Click(chromedp.CSS("#resend")), chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(" "))
		v.run(`document.getElementById("code").focus()`)
		v.do(chromedp.KeyEvent(kb.Enter)) // submits the form by its button
		v.run(`document.getElementById("resend").focus()`)
	}
	press()
	if s := v.look(); s.Clicks != 4 || s.Submits != 4 {
		t.Fatalf("before the wait, of 4 presses: %+v", s)
	}
	v.update(sent(60_000, first, "a-token"))
	press()
	if s := v.look(); s.Clicks != 4 || s.Submits != 4 || !s.Focused || !s.Held || s.Disabled {
		t.Errorf("during the wait: %+v", s)
	}
	v.pass(60_101)
	if s := v.look(); !s.Focused || s.Held || s.Disabled {
		t.Errorf("after the wait: %+v", s)
	}
	press()
	if s := v.look(); s.Clicks != 8 || s.Submits != 8 {
		t.Errorf("after the wait, of 4 more presses: %+v", s)
	}
}

func aButtonInside(t *testing.T, v *tab, p *player) {
	p.body = around
	v.visit(p)
	v.update(sent(60_000, first, "a-token"))
	v.do(chromedp.Click(chromedp.CSS("#resend")))
	v.mustShow("One email a minute. Next in 1:00.")
	v.pass(60_101)
	v.do(chromedp.Click(chromedp.CSS("#resend")))
	if s := v.look(); s.Clicks != 1 || s.Held {
		t.Errorf("%+v", s)
	}
}

// A framework may draw the button anew, or later.
func aReplacedButton(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.run(`window.old = document.getElementById("resend")`)
	v.run(`old.remove()`)
	v.update(sent(60_000, first, "a-token"))
	v.run(`document.querySelector("form").append(Object.assign(document.createElement("button"), {id: "resend", textContent: "New"}))`)
	v.do(chromedp.Click(chromedp.CSS("#resend")))
	v.pass(1000)
	if s := v.look(); !s.Held || s.Submits != 0 {
		t.Errorf("%+v", s)
	}
	v.run(`document.getElementById("resend").replaceWith(old)`)
	v.pass(1000)
	v.pass(58_101)
	v.mustShow("")
}

// The visitor types another address, or the page takes the element away.
func resetAndRemoval(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.update(sent(60_000, first, "a-token"))
	v.element("reset()")
	v.mustShow("")
	v.do(chromedp.Reload())
	v.mustShow("")
	v.update(sent(60_000, first, "a-token"))
	v.pass(1000)
	p.says(200, still(58_000, first))
	v.run(`(window.gone = document.querySelector("mailgate-countdown")).remove()`)
	if get[bool](v, `document.getElementById("resend").hasAttribute("aria-disabled")`) {
		t.Error("the button is held by nobody")
	}
	v.run("document.body.append(gone)")
	v.shows("One email a minute. Next in 0:58.")
	if s := v.look(); s.count("end") != 0 || p.asks() != 1 {
		t.Errorf("asked for %q, saw %+v", p.questions(), s)
	}
}

// Where a page is kept as a copy, to be shown again, what was held when it was made is held in it
// by nobody.
func aPageThatIsACopy(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.update(sent(60_000, first, "a-token"))
	v.run("window.copy = document.body.cloneNode(true)")
	v.pass(60_101)
	v.mustShow("")
	v.run("document.body.replaceWith(copy)")
	if s := v.look(); s.Held || get[bool](v, `document.querySelector("mailgate-countdown").hasAttribute("waiting")`) {
		t.Errorf("%+v", s)
	}
}

// So it is with a copy that says whose wait it is.
func aCopyThatHasAMailbox(t *testing.T, v *tab, p *player) {
	p.body = with(`mailbox="alice@example.com"`)
	aPageThatIsACopy(t, v, p)
}

// The way of a click into a closed tree is not seen from outside.
func aButtonInAClosedTree(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.run(`(() => {
		const root = document.body.appendChild(document.createElement("div")).attachShadow({ mode: "closed" });
		const button = root.appendChild(Object.assign(document.createElement("button"), { id: "inner" }));
		const element = root.appendChild(document.createElement("mailgate-countdown"));
		element.htmlFor = "inner";
		element.update({ wait_ms: 60000 });
		button.addEventListener("click", () => window.through++);
		Object.assign(window, { inner: { root, button, element }, through: 0 });
	})()`)
	clicks := func(want int) {
		t.Helper()
		v.run("inner.button.click()")
		if got := get[int](v, "through"); got != want {
			t.Errorf("%d clicks went through, want %d", got, want)
		}
	}
	clicks(0)
	if said := get[string](v, `inner.element.shadowRoot.querySelector("[role=status]").textContent`); said != "Next in 1 minute." {
		t.Errorf("it says %q", said)
	}
	v.run("inner.element.remove()")
	clicks(1)
	v.run("inner.root.append(inner.element)")
	clicks(1)
	v.pass(60_101)
	clicks(2)
}

// What is said aloud is not seen, and makes no page longer.
func aPanelThatScrolls(t *testing.T, v *tab, p *player) {
	v.visit(p)
	v.run(`(() => {
		const panel = document.body.appendChild(document.createElement("div"));
		const long = panel.appendChild(document.createElement("p"));
		panel.append(document.querySelector("mailgate-countdown"));
		Object.assign(panel.style, { height: "100px", overflow: "auto" });
		long.style.height = "5000px";
	})()`)
	v.update(sent(60_000, first, "a-token"))
	if high := get[float64](v, "document.documentElement.scrollHeight - innerHeight"); high > 0 {
		t.Errorf("the page scrolls by %v px", high)
	}
	if lines := get[int](v, `(() => {
		const words = document.createRange();
		words.selectNodeContents(document.querySelector("mailgate-countdown").shadowRoot.querySelector("[role=status]"));
		return words.getClientRects().length;
	})()`); lines != 1 {
		t.Errorf("what is said is broken into %d lines, and a screen reader may run their words together", lines)
	}
	v.update("{ wait_ms: 0 }")
	if high := get[float64](v, `document.querySelector("mailgate-countdown").offsetHeight`); high > 0 {
		t.Errorf("without a wait it is %v px high", high)
	}
}
