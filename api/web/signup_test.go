package web_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The whole of a sign-up: pages, a back end, mailgate, and a mail by SMTP.
func TestSignUpInABrowser(t *testing.T) {
	browser := openBrowser(t)
	for name, test := range map[string]func(t *testing.T, v *tab, d *desk){
		"from the address to the welcome, by keyboard": signingUp,
		"a reload, sleep and another mail":             signingUpAgain,
		"two tabs":                                     signingUpInTwoTabs,
		"another address is typed":                     anotherAddressIsTyped,
		"the pages lead to each other":                 theWayAround,
		"the inbox goes on":                            theInboxGoesOn,
		"the way back from the inbox":                  theWayBackFromTheInbox,
		"a full inbox":                                 aFullInbox,
		"answers about codes":                          answersAboutCodes,
		"a mail that is slow to open":                  aMailThatIsSlowToOpen,
		"a clock an hour ahead":                        func(t *testing.T, v *tab, d *desk) { signingUpByAWrongClock(v, d, +3_600_000) },
		"a clock an hour behind":                       func(t *testing.T, v *tab, d *desk) { signingUpByAWrongClock(v, d, -3_600_000) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, nil)
			test(t, newVisitor(t, browser), d)
		})
	}
}

// asksFor types an address and goes on to the code.
func (tb *tab) asksFor(d *desk, email string) {
	tb.t.Helper()
	tb.do(chromedp.Navigate(d.URL + "/"))
	tb.reads("form-title", "Create your account")
	tb.types("email", email)
	tb.reads("to", email)
}

// wait is what stands beside the button that sends again, and whether it holds it.
func (tb *tab) wait() (text string, held bool) {
	tb.t.Helper()
	text = get[string](tb, `document.getElementById("again-wait").shadowRoot.querySelector("[part=text]").textContent.trim()`)
	return text, get[bool](tb, `document.getElementById("again").getAttribute("aria-disabled") === "true"`)
}

func (tb *tab) waits(want string) {
	tb.t.Helper()
	text, held := "", false
	tb.until("the wait is "+want, func() bool {
		text, held = tb.wait()
		return text == want && held == (want != "")
	})
}

func signingUp(t *testing.T, v *tab, d *desk) {
	v.do(chromedp.Navigate(d.URL + "/"))
	v.reads("form-title", "Create your account")
	v.types("email", "")
	v.reads("ask-note", "Enter your email address.")
	v.types("email", "nobody")
	v.reads("ask-note", "no @")
	v.forgive()
	if got := get[string](v, `email.ariaInvalid + announce.textContent`); got != "true" { // an alert is heard without it
		t.Errorf("the address is invalid, and said aloud: %q", got)
	}
	v.types("email", "alice@example.com")
	v.reads("prove-title", "Check your email")
	if id := v.focused(); id != "code" {
		t.Errorf("the focus is on #%s", id)
	}
	if got := get[string](v, `[code.autocomplete, code.inputMode].join(" ")`); got != "one-time-code numeric" {
		t.Errorf("the field for the code is %q", got)
	}
	if got := get[string](v, `document.querySelector("[value=zh]").labels[0].lang`); got != "zh" {
		t.Errorf("the name of another language says that it is in %q", got)
	}
	v.reads("announce", "Sent. Next email in")
	v.reads("toast", "New email")
	if text, held := v.wait(); text == "" || !held {
		t.Errorf("it does not wait: %q, %t", text, held)
	}
	v.run(`code.value = "` + wrongCode(d.code("alice@example.com")) + `"`)
	v.press("#verify", "#verify")
	v.comesFree("#verify")
	v.reads("prove-note", "Wrong code. 4 attempts left.") // a second click costs none
	v.forgive()                                           // the browser itself reports a 422
	inbox := v.another()
	inbox.do(chromedp.Navigate(d.URL + "/inbox"))
	inbox.until("the mail is there", func() bool { return get[int](inbox, `document.querySelectorAll("#mails button").length`) == 1 })
	inbox.do(chromedp.Click(chromedp.CSS("#mails button")))
	inbox.reads("subject", "is your code")
	if got := get[string](v, `email.ariaInvalid + code.ariaInvalid`); got != "falsetrue" {
		t.Errorf("the address and the code are invalid: %q", got)
	}
	code := sixDigits.FindString(inbox.text("subject"))
	v.types("code", code[:3]+" "+code[3:]) // as mails show them
	v.reads("done-title", "Welcome")
	if id := v.focused(); id != "done-title" {
		t.Errorf("the focus is on #%s", id)
	}
	v.do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	v.reads("form-title", "Create your account")
	if len(d.box.List()) != 1 {
		t.Errorf("%d mails", len(d.box.List()))
	}
	answersThatComeLate(t, v, d)
}

// holdBack keeps the answers of the demo's back end until letThrough is called, which
// returns when the page has dealt with them: what it does then it does before a timer fires.
const holdBack = `(() => {
	const ask = window.fetch;
	let go;
	const gate = new Promise((resolve) => { go = resolve; });
	const late = [];
	window.fetch = (path, ...rest) => {
		if (path.startsWith("/demo/mails")) return ask(path, ...rest);
		const answer = ask(path, ...rest).then(async (one) => {
			const body = await one.json();
			return { status: one.status, json: async () => body };
		});
		late.push(answer);
		return gate.then(() => answer);
	};
	window.letThrough = async () => {
		window.fetch = ask;
		await Promise.all(late);
		go();
		return new Promise((done) => setTimeout(() => done(true)));
	};
})()`

// Whoever has gone on to another address is not pulled back by an answer about the one
// before.
func answersThatComeLate(t *testing.T, v *tab, d *desk) {
	asksAnother := func(after string) {
		t.Helper()
		v.do(chromedp.Click(chromedp.CSS("#other")))
		v.reads("form-title", "Create your account")
		v.do(chromedp.KeyEvent("carol@example.com"))
		if get[bool](v, `verify.ariaBusy === "true"`) {
			t.Errorf("%s: the button is busy with the code before", after)
		}
		get[bool](v, "letThrough()")
		if v.text("prove-title")+v.text("done-title")+v.text("status") != "" || v.focused() != "email" {
			t.Errorf("%s: it shows %q, %q, %q, the focus is on #%s", after, v.text("prove-title"), v.text("done-title"), v.text("status"), v.focused())
		}
		if got := get[string](v, `email.value + (sessionStorage["mailgate.signup"] ?? "")`); got != "carol@example.com" {
			t.Errorf("%s: the address is %q", after, got)
		}
	}
	v.types("email", "bob@example.com")
	v.reads("to", "bob@example.com")
	v.do(chromedp.Click(chromedp.CSS("#reset")))
	v.reads("announce", "Mailbox reset.")
	v.waits("")
	v.run(holdBack)
	v.do(chromedp.Click(chromedp.CSS("#again")))
	v.until("another mail is there", func() bool { return len(d.box.List()) == 3 })
	asksAnother("a mail that was sent again")

	v.types("email", "bob@example.com") // who waits, after all
	v.reads("status", "429 not yet")
	v.forgive()
	v.run(holdBack)
	v.do(chromedp.Click(chromedp.CSS("#reset")))
	v.run("email.focus()")
	v.types("email", "carol@example.com")
	get[bool](v, "letThrough()")
	v.reads("to", "carol@example.com")
	if v.text("status") != "200 sent" {
		t.Errorf("it shows %q of the address before", v.text("status"))
	}
	v.run(holdBack)
	v.types("code", d.code("carol@example.com"))
	asksAnother("a code that was right")
}

// What was said about an address goes when another is typed, as its countdown does, and is not
// said when it comes too late.
func anotherAddressIsTyped(t *testing.T, v *tab, d *desk) {
	d.ask(`{"email":"alice@example.com"}`)
	typesOn := func() {
		t.Helper()
		v.run("email.select()")
		v.do(chromedp.KeyEvent("bob@example.com"))
	}
	saysNothing := func(when string) {
		t.Helper()
		if got := v.text("verdict") + v.text("status") + v.text("operator") + v.text("ask-note"); got != "" || v.text("said-empty") == "" {
			t.Errorf("%s: it says %q of the address before", when, got)
		}
	}
	v.do(chromedp.Navigate(d.URL + "/"))
	v.types("email", "alice@example.com")
	v.reads("status", "429 not yet")
	v.forgive()
	v.run(holdBack)
	v.do(chromedp.Click(chromedp.CSS("#reset")))
	typesOn()
	saysNothing("a wait that is shown")
	get[bool](v, "letThrough()")
	v.reads("announce", "Mailbox reset.")
	saysNothing("a mailbox that is reset")

	d.ask(`{"email":"carol@example.com"}`)
	v.run(holdBack)
	v.types("email", "carol@example.com")
	typesOn()
	get[bool](v, "letThrough()")
	saysNothing("a wait that comes late")
	v.until("the browser has reported the 429", v.hasComplained)
	v.forgive()
}

// passes lets time go by for the visitor and the server alike.
func (d *desk) passes(v *tab, ms int64) {
	d.ahead.Add(ms)
	v.pass(float64(ms))
}

// isOver lets time go by until the wait is over: that it is not over too early is seen by
// the mail that may be sent then.
func (tb *tab) isOver(d *desk) {
	tb.t.Helper()
	tb.until("the wait is over", func() bool {
		d.passes(tb, 1000)
		text, held := tb.wait()
		return text == "" && !held
	})
}

func signingUpAgain(t *testing.T, v *tab, d *desk) {
	call(v, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: timeMachine})
	v.asksFor(d, "alice@example.com")
	v.waits("One email a minute. Next in 1:00.")
	v.reads("toast", "New email")
	v.run(`toast.querySelector("a").focus()`)
	d.passes(v, 10_000)
	v.reads("toast", "New email") // nothing goes away under the focus
	v.run("code.focus()")
	d.passes(v, 2000)
	if v.text("toast") != "" {
		t.Error("the notice of a mail stays")
	}
	v.do(chromedp.Reload())
	v.reads("to", "alice@example.com")
	left := func() (seconds int) {
		if text, held := v.wait(); held {
			fmt.Sscanf(text, "One email a minute. Next in 0:%d.", &seconds)
		}
		return seconds
	}
	// The server's clock goes on meanwhile, so it is a second less at times.
	v.until("it counts on", func() bool { return left() > 0 && left() <= 48 })
	v.until("what it asked is answered", func() bool { // else it would hear of a time before it slept
		return get[bool](v, `performance.getEntriesByType("resource").some((one) => one.name.includes("/countdown/"))`)
	})
	before := left()
	d.ahead.Add(10_000) // the machine sleeps, for less than a busy one leaves of the wait
	v.setClock(10_000)
	v.pass(1000)
	v.until("it knows that it slept", func() bool { return left() > 0 && left() <= before-10 })
	v.isOver(d)
	v.do(chromedp.Click(chromedp.CSS("#again")))
	v.until("there is another mail", func() bool { return len(d.box.List()) == 2 })
	v.reads("prove-title", "Check your email")
	v.types("code", sixDigits.FindString(d.box.List()[0].Text)) // the first is as good as the second
	v.reads("done-title", "Welcome")
}

func signingUpInTwoTabs(t *testing.T, v *tab, d *desk) {
	v.asksFor(d, "alice@example.com")
	second := v.another()
	second.do(chromedp.Navigate(d.URL + "/"))
	second.reads("form-title", "Create your account")
	second.run("email.focus()")
	second.do(chromedp.KeyEvent("Alice+again@example.com"))
	second.run("send.focus()")
	second.do(chromedp.KeyEvent(kb.Enter))
	second.reads("status", "429 not yet")
	second.forgive()
	if id := second.focused(); id != "send" {
		t.Errorf("the focus is on #%s", id)
	}
	second.reads("why", "minute limit")
	if !get[bool](second, `document.getElementById("send").getAttribute("aria-disabled") === "true"`) {
		t.Error("the second tab may ask at once")
	}
	second.types("email", "bob@example.com") // who does not wait for alice
	second.reads("to", "bob@example.com")
	if len(d.box.List()) != 2 {
		t.Errorf("%d mails", len(d.box.List()))
	}
	if asked := get[int](v, `performance.getEntriesByType("resource").filter((one) => one.name.includes("/countdown/")).length`); asked != 0 {
		t.Error("the first tab asks how long bob has to wait")
	}
	second.do(chromedp.Click(chromedp.CSS("#other")))
	for _, tt := range []struct {
		email string
		held  bool
	}{{"alice@example.com", true}, {"carol@example.com", false}, {"bob@example.com", true}} {
		second.run("email.select()")
		second.do(chromedp.KeyEvent(tt.email))
		second.until("the button is as "+tt.email+" needs it", func() bool {
			return get[bool](second, `send.getAttribute("aria-disabled") === "true"`) == tt.held
		})
	}
	if kept := get[string](second, "JSON.stringify(localStorage)"); strings.Contains(kept, "@") {
		t.Errorf("the tabs remember %s", kept)
	}
}

func signingUpByAWrongClock(v *tab, d *desk, ms int) {
	call(v, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: timeMachine + fmt.Sprintf("\nif (window.time && !localStorage.wrong) { localStorage.wrong = 1; time.set(Math.round(%d - Date.now() + %d)); }", d.now(), ms)})
	v.asksFor(d, "alice@example.com")
	v.waits("One email a minute. Next in 1:00.")
	v.do(chromedp.Reload())
	v.until("it counts on after a reload", func() bool {
		text, held := v.wait()
		return held && text > "One email a minute. Next in 0:3"
	})
	v.isOver(d)
	v.do(chromedp.Click(chromedp.CSS("#again")))
	v.until("there is another mail", func() bool { return len(d.box.List()) == 2 })
	v.waits("One email a minute. Next in 1:00.")
}

// From page to page to the console, and on the narrowest phone the way there is one line.
func theWayAround(t *testing.T, v *tab, d *desk) {
	d.ask(`{"email":"alice@example.com"}`)
	v.do(chromedp.Navigate(d.URL + "/"))
	v.reads("badge", "1")
	for _, width := range []int64{320, 353, 390, 430, 560, 1280} {
		inspector{tab: v}.wear(look{scheme: "light", width: width, height: 800})
		v.run(`badge.textContent = "100"`) // a busy afternoon
		lines := get[[]float64](v, `[...document.querySelectorAll("nav a")].map((link) => link.getBoundingClientRect().height)`)
		wide := get[float64](v, tooWide)
		if len(lines) != 4 || slices.Max(lines) > 45 || wide > 0 {
			t.Errorf("at %d px the links are %v px high, and the page %v px too wide", width, lines, wide)
		}
	}
	for _, next := range [][2]string{{"Inbox", "/inbox"}, {"Sign up", "/"}, {"Console", "/admin"}} {
		v.run(fmt.Sprintf(`[...document.querySelectorAll("nav a")].find((link) => link.textContent.startsWith(%q)).click()`, next[0]))
		v.until("it shows "+next[1], func() bool { return get[string](v, "document.readyState + location.pathname") == "complete"+next[1] })
	}
	v.reads("mailbox-title", "Mailbox") // with the key that mailgate dev made
	if got := get[string](v, "location.href"); strings.Contains(got, opsKey) {
		t.Errorf("the key stays in %s", got)
	}
}

// What mailgate says about a code is shown like what it says about an email, the code of the
// email that arrived can be filled in, and a spent budget of attempts holds the button.
func answersAboutCodes(t *testing.T, v *tab, d *desk) {
	v.asksFor(d, "alice@example.com")
	v.reads("toast", "New email")
	v.do(chromedp.Click(chromedp.CSS("#fill")))
	if got := get[string](v, "code.value + document.activeElement.id"); got != d.code("alice@example.com")+"verify" {
		t.Errorf("filled in and focused: %q", got)
	}
	held := func() bool { return get[bool](v, `verify.ariaDisabled === "true" && !verify.ariaBusy`) }
	wrong := wrongCode(d.code("alice@example.com"))
	for left := 4; left >= 0; left-- {
		v.run("code.focus()")
		v.types("code", wrong)
		v.until("the answer is shown", func() bool { return get[int](v, "JSON.parse(json.textContent).attempts_left ?? -1") == left })
		v.reads("status", "422 wrong code")
		v.forgive()
	}
	v.types("code", wrong)
	v.reads("status", "429 too many attempts")
	v.forgive()
	v.until("the button is held", held)
	wait := get[string](v, `document.getElementById("verify-wait").shadowRoot.querySelector("[part=text]").textContent.trim()`)
	if !strings.HasPrefix(wait, "Too many attempts. Try again in ") || v.text("prove-note") != "" {
		t.Errorf("it says %q and %q", wait, v.text("prove-note"))
	}
	v.do(chromedp.Click(chromedp.CSS("#reset")))
	v.reads("announce", "Mailbox reset.")
	v.until("the button is free", func() bool { return !held() })
	v.types("code", d.code("alice@example.com"))
	v.reads("status", "200 verified")
	v.reads("done-title", "Welcome")
}
