package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// holdAnswer keeps the answer to what ends in a path back until letGo() is called, and then gives
// the page another, if there is one to give.
func holdAnswer(path, another string) string {
	if another == "" {
		another = "answer"
	}
	return fmt.Sprintf(`(() => {
	const ask = window.fetch;
	const gate = new Promise((open) => {
		window.letGo = () => {
			window.fetch = ask;
			open();
		};
	});
	window.arrived = window.wasRead = false;
	window.fetch = async (path, ...rest) => {
		const answer = await ask(path, ...rest);
		if (!path.endsWith(%q)) {
			return answer;
		}
		const body = await answer.json();
		answer.json = async () => body;
		window.arrived = true;
		await gate;
		setTimeout(() => { window.wasRead = true; });
		return %s;
	};
})()`, path, another)
}

// Who goes on to another mailbox stays there, and hears that the first is forgotten.
func anotherMeanwhile(t *testing.T, v *tab, d *desk) {
	v.opens(d)
	d.sent("carol@example.com", 0)
	d.sent("dave@example.com", 0)
	v.forgets("carol@example.com", "")
	v.types("email", "dave@example.com")
	v.reads("found-title", "dave@example.com")
	v.run(`reason.value = "asked on the phone"`)
	v.run("letGo()")
	v.reads("announce", "carol@example.com was reset: 1 email and 0 code attempts removed.")
	v.reads("found-title", "dave@example.com")
	v.reads("sends-title", "1 email on record")
	if got := get[string](v, "reason.value"); got != "asked on the phone" {
		t.Errorf("the reason for another is %q", got)
	}
	v.types("email", "carol@example.com")
	v.reads("sends-title", "0 emails on record")
}

// What the question names is forgotten, and what else was looked up before is not shown under it.
func anotherUnderTheQuestion(t *testing.T, v *tab, d *desk) {
	v.opens(d)
	d.sent("alice@example.com", 0)
	d.sent("bob@example.com", 0)
	v.types("email", "alice@example.com")
	v.reads("found-title", "alice@example.com")
	v.run(holdAnswer("/bob%40example.com", ""))
	v.types("email", "bob@example.com")
	v.until("the answer about bob is held back", func() bool { return get[bool](v, "arrived") })
	v.do(chromedp.Click(chromedp.CSS("#ask-reset")))
	v.reads("confirm-text", "1 email and the code attempts of alice@example.com")
	v.run("letGo()")
	v.until("the page has the answer about bob", func() bool { return get[bool](v, "wasRead") })
	if title := v.text("found-title"); title != "alice@example.com" {
		t.Errorf("under the question there is %q", title)
	}
	v.do(chromedp.Click(chromedp.CSS("#reset-now")))
	v.reads("announce", "alice@example.com was reset: 1 email and 0 code attempts removed.")
	v.reads("sends-title", "0 emails on record")
	v.types("email", "bob@example.com")
	v.reads("found-title", "bob@example.com")
	v.reads("sends-title", "1 email on record")
}

// forgets has a mailbox forgotten that has one mail, as far as the answer that is held back.
func (tb *tab) forgets(email, another string) {
	tb.t.Helper()
	tb.types("email", email)
	tb.reads("found-title", email)
	tb.until("the lookup is done", func() bool { return tb.text("look-note") == "" }) // its note moves the button
	tb.run(holdAnswer("/reset", another))
	tb.do(chromedp.Click(chromedp.CSS("#ask-reset")))
	tb.reads("confirm-text", " of "+email)
	tb.do(chromedp.Click(chromedp.CSS("#reset-now")))
	tb.until("the answer is held back", func() bool { return get[bool](tb, "arrived") })
}

// That a mailbox could not be forgotten is told with its name, to who has asked for it.
func notForgotten(t *testing.T, v *tab, d *desk) {
	const (
		lost    = `Promise.reject(new TypeError("nothing came back"))`
		shut    = `{ status: 503, json: async () => ({ detail: "The storage is away." }) }`
		tooMuch = `{ status: 429, json: async () => ({ title: "Slow down.", wait_ms: 9000 }) }`
		noKey   = `{ status: 401, json: async () => ({}) }`
		carol   = "carol@example.com: "
	)
	v.opens(d)
	for _, tt := range []struct{ answer, another, note string }{
		{lost, "", carol + "No answer. The reset may or may not be done."},
		{shut, "", carol + "The storage is away."},
		{shut, "dave@example.com", carol + "The storage is away."},
		{tooMuch, "dave@example.com", carol + "Slow down."},
	} {
		v.forgets("carol@example.com", tt.answer)
		if tt.another != "" {
			v.types("email", tt.another)
			v.reads("found-title", tt.another)
		}
		v.run("letGo()")
		v.until("it says "+tt.note, func() bool { return v.text("look-note") == tt.note })
	}
	v.forgets("carol@example.com", tooMuch)
	v.run("letGo()")
	v.reads("look-wait", "Try again in 0:0")
	for _, answer := range []string{shut, noKey, ""} {
		v.forgets("carol@example.com", answer)
		v.do(chromedp.Click(chromedp.CSS("#sign-out")))
		v.reads("gate-title", "Sign in")
		v.types("key", opsKey)
		v.reads("mailbox-title", "Mailbox")
		v.types("email", "dave@example.com")
		v.reads("found-title", "dave@example.com")
		v.run("letGo()")
		v.until("the page has the answer", func() bool { return get[bool](v, "wasRead") })
		if said := v.text("look-note") + v.text("gate-title") + v.text("announce"); strings.Contains(said, "carol") || strings.Contains(said, "Sign in") {
			t.Errorf("the next operator is told %q", said)
		}
	}
}
