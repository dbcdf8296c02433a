package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/mailgate/mailgate/api/apitest"
)

// asksFor enters an address on the sign-up page and goes on to the code.
func (tb *tab) asksFor(s *server, email string) {
	tb.t.Helper()
	tb.visit(s.URL)
	tb.reads("form-title", "Create your account")
	tb.enters("email", email)
	tb.reads("to", email)
}

// wait is what the countdown beside a button says, and whether the button is held.
func (tb *tab) wait(button string) (text string, held bool) {
	tb.t.Helper()
	text = get[string](tb, fmt.Sprintf(`document.getElementById("%s-wait").shadowRoot.querySelector("[part=text]").textContent.trim()`, button))
	return text, get[bool](tb, button+`.ariaDisabled === "true"`)
}

func (tb *tab) waits(button, want string) {
	tb.t.Helper()
	tb.until(button+" waits: "+want, func() bool {
		text, held := tb.wait(button)
		return strings.HasPrefix(text, want) && held == (want != "") && (want != "" || text == "")
	})
}

// pass lets time pass for the page and the server alike.
func (s *server) pass(v *tab, ms int64) {
	s.Ahead.Add(ms)
	v.pass(float64(ms))
}

// The whole of a sign-up by keyboard: pages, a back end, mailgate, and an email by SMTP.
func TestSignUp_ByKeyboard_Verifies(t *testing.T) { inEachBrowser(t, signUpByKeyboardVerifies) }

func signUpByKeyboardVerifies(t *testing.T, newVisitor opener) {
	const email = "a.person.with.quite.a.long.name@example.com"
	s, v := newServer(t, nil), newVisitor(t)
	v.visit(s.URL)
	v.enters("email", "")
	v.reads("ask-note", "Enter your email address.")
	v.enters("email", "alice")
	v.reads("ask-note", "no @")
	v.is(`email.ariaInvalid + announce.textContent`, "true") // the alert is read aloud already
	v.looksRight("signup-error")
	v.enters("email", email)
	v.reads("prove-title", "Check your email")
	v.hasFocus("code")
	v.is(`[code.getAttribute("autocomplete"), code.inputMode, document.querySelector("[value=zh]").labels[0].lang].join()`, "one-time-code,numeric,zh")
	v.reads("announce", "Sent. Next email in")
	v.reads("status", "200 sent")
	v.waits("again", "One email a minute. Next in ")
	v.enters("code", "12345")
	v.reads("prove-note", "six digits")
	v.reads("status", "422 invalid")
	v.run(fmt.Sprintf("code.value = %q", s.wrongCode(email)))
	v.staysBusy("#verify")
	v.reads("prove-note", "Wrong code. 4 guesses left.") // the second click cost none
	v.reads("status", "422 wrong code")
	v.run(`document.querySelector("#verdict details").open = true`)
	v.looksRight("signup-code", ".toast", ".badge")
	code := s.Code(email)
	v.enters("code", code[:3]+" "+code[3:]) // as emails show it
	v.reads("done-title", "Welcome")
	v.reads("status", "200 verified")
	v.hasFocus("done-title")
	v.looksRight("signup-done")
	v.press(kb.Tab, kb.Enter)
	v.reads("form-title", "Create your account")
	if n := len(s.Relay.List()); n != 1 {
		t.Errorf("%d emails", n)
	}
}

// The countdown goes on after a reload, and the code of the first email is still valid after the
// second. The notice of an email does not go away under the focus.
func TestSignUp_Reload_CountsOn(t *testing.T) { inEachBrowser(t, signUpReloadCountsOn) }

func signUpReloadCountsOn(t *testing.T, newVisitor opener) {
	s, v := newServer(t, nil), newVisitor(t, timeMachine)
	v.asksFor(s, "alice@example.com")
	v.waits("again", "One email a minute. Next in 1:00.")
	first := s.Code("alice@example.com")
	v.reads("toast", "New email")
	v.run(`toast.querySelector("a").focus()`)
	s.pass(v, 10_000)
	v.reads("toast", "New email")
	v.run("code.focus()")
	s.pass(v, 2000)
	v.is("toast.hidden", "true")
	v.reload()
	v.reads("to", "alice@example.com")
	v.waits("again", "One email a minute. Next in 0:4")
	v.until("the wait is over", func() bool {
		s.pass(v, 1000)
		_, held := v.wait("again")
		return !held
	})
	v.click("#again")
	v.until("there is another email", func() bool { return len(s.Relay.List()) == 2 })
	v.enters("code", first)
	v.reads("done-title", "Welcome")
}

// The code of the email can be filled in. Spent attempts hold the button until a reset. All of it
// also where the browser stores nothing.
func TestSignUp_AttemptsSpent_HoldsVerify(t *testing.T) {
	t.Parallel()
	inEachBrowser(t, signUpAttemptsSpentHoldsVerify)
}

func signUpAttemptsSpentHoldsVerify(t *testing.T, newVisitor opener) {
	s, v := newServer(t, nil), newVisitor(t, withoutStorage)
	v.asksFor(s, "alice@example.com")
	v.reads("toast", "New email")
	v.click("#fill")
	v.is("code.value + document.activeElement.id", s.Code("alice@example.com")+"verify")
	for range 5 {
		s.post("/verify-code", fmt.Sprintf(`{"email":"alice@example.com","code":%q}`, s.wrongCode("alice@example.com")))
	}
	v.enters("code", s.wrongCode("alice@example.com"))
	v.reads("status", "429 too many guesses")
	v.waits("verify", "Too many guesses. Try again in ")
	v.is(`document.getElementById("prove-note").textContent`, "")
	v.click("#reset")
	v.reads("announce", "Mailbox reset.")
	v.waits("verify", "")
	v.enters("code", s.Code("alice@example.com"))
	v.reads("done-title", "Welcome")
}

// The links lead to the console and the API, and back. No address gets into the browser's history.
func TestPages_Links_LeadToEachOther(t *testing.T) { inEachBrowser(t, pagesLinksLeadToEachOther) }

func pagesLinksLeadToEachOther(t *testing.T, newVisitor opener) {
	s, v := newServerWithoutKeys(t), newVisitor(t)
	v.asksFor(s, "alice@example.com")
	v.reads("badge", "1")
	for _, link := range [][2]string{{"Inbox", "/inbox"}, {"Sign up", "/"}, {"API", "/docs"}, {"Inbox", "/inbox"}, {"Console", "/admin"}, {"API", "/docs"}, {"Console", "/admin"}, {"Sign up", "/"}, {"Console", "/admin"}} {
		v.run(fmt.Sprintf(`[...document.querySelectorAll("nav a")].find((link) => link.textContent.startsWith(%q)).click()`, link[0]))
		v.isTrue(fmt.Sprintf(`document.readyState + location.pathname === "complete%s"`, link[1]))
	}
	v.reads("mailbox-title", "Mailbox")
	v.is("location.hash", "")
	v.run(`import("/admin/console/console_entry.js").then((entry) => { window.command = entry.asCurl("/admin/requests"); })`)
	v.isTrue("window.command === `curl -s '${location.origin}/admin/requests'`") // without a key, as none is needed
	v.click(".brand")
	v.reads("to", "alice@example.com")
	if !v.inFirefox() {
		return
	}
	v.visit(s.URL + "/inbox?last")
	v.until("Firefox has written its history", func() bool { return strings.Contains(startFirefox().visited(), s.URL+"/inbox?last") })
	for _, secret := range []string{"alice@", "alice%40"} {
		if strings.Contains(startFirefox().visited(), secret) {
			t.Errorf("the history has %s", secret)
		}
	}
}

// The first step remembers its wait too, until another address is typed.
func TestSignUp_ReloadWhileItWaits_WaitsOn(t *testing.T) {
	t.Parallel()
	inEachBrowser(t, signUpReloadWhileItWaitsWaitsOn)
}

func signUpReloadWhileItWaitsWaitsOn(t *testing.T, newVisitor opener) {
	s, v := newServer(t, nil), newVisitor(t)
	s.sendCode("alice@example.com")
	v.visit(s.URL)
	v.enters("email", "alice@example.com")
	v.reads("status", "429 not yet")
	v.waits("send", "One email a minute. Next in ")
	v.reload()
	v.waits("send", "One email a minute. Next in ")
	v.is("email.value", "alice@example.com")
	v.reads("why", "minute limit")
	v.types("email", "bob@example.com")
	v.waits("send", "")
	v.is("verdict.hidden", "true")
	v.reload()
	v.is("email.value", "")
	v.enters("email", "bob@example.com")
	v.reads("to", "bob@example.com")
}

// On a phone the notice of an email leaves the form and the links free. A badge is that of the newest answer.
func TestSignUp_Phone_NoticeCoversNothing(t *testing.T) {
	t.Parallel()
	s, v := newServer(t, nil), newVisitor(t)
	v.size(390, 700)
	v.asksFor(s, "alice@example.com")
	v.reads("toast", "New email")
	v.isTrue(`document.getAnimations().every((one) => one.playState === "finished")`)
	v.is(`(notice => [...document.querySelectorAll("nav a, #prove, #prove *")].filter((one) => { const box = one.getBoundingClientRect(); return box.height > 0 && box.bottom > notice.top && box.top < notice.bottom; }).length)(toast.getBoundingClientRect())`, "0")
	v.run(`code.value = "000000"`)
	v.run(holdAnswers)
	v.click("#verify")
	v.isTrue("asked === 1")
	v.is(`document.getElementById("status").textContent`, "…")
	get[bool](v, "letGo()")
	v.click("#other")
	v.enters("email", "alice")
	v.reads("status", "422 invalid")
	v.enters("email", "")
	v.reads("ask-note", "Enter your email address.")
	v.is(`document.getElementById("status").hidden`, "true")
}

// An answer about an address that is no longer in use changes nothing, and another address does not
// wait for the one that was mailed.
func TestSignUp_AnotherAddress_LateAnswerIsIgnored(t *testing.T) {
	t.Parallel()
	s, v := newServer(t, nil), newVisitor(t)
	v.asksFor(s, "alice@example.com")
	v.run(holdAnswers)
	v.enters("code", s.Code("alice@example.com"))
	v.click("#other")
	v.press("carol@example.com")
	get[bool](v, "letGo()")
	v.is(`[email.value, ask.hidden, done.hidden, verdict.hidden, verify.ariaBusy, document.activeElement.id].join()`, "carol@example.com,false,true,true,,email")

	s.sendCode("bob@example.com")
	v.run(holdAnswers)
	v.enters("email", "bob@example.com")
	v.types("email", "dave@example.com")
	get[bool](v, "letGo()")
	v.is(`[ask.hidden, verdict.hidden, document.getElementById("ask-note").textContent].join()`, "false,true,")
	v.is("send.ariaDisabled", "null")
	v.enters("email", "Alice+again@example.com")
	v.reads("why", "minute limit")
	v.isTrue(`send.ariaDisabled === "true"`)
	v.looksRight("signup-wait", ".pill", ".operator", "#ring", ".tiers i.used")
}

// A button whose answer takes longer than 300 ms says what it does. Before that, nothing flickers.
func TestSignUp_SlowAnswer_SaysSending(t *testing.T) {
	t.Parallel()
	s, v := newServer(t, nil), newVisitor(t, timeMachine)
	v.visit(s.URL)
	v.types("email", "alice@example.com")
	v.run(holdAnswers)
	v.press(kb.Enter)
	v.isTrue("asked === 1")
	v.pass(299)
	v.is("send.textContent", "Send code")
	v.pass(1)
	v.is("send.textContent", "Sending…")
	v.picture("signup-sending")
	v.run("letGo()")
	v.pass(0)
	v.reads("to", "alice@example.com")
	v.is("send.textContent", "Send code")
	v.pass(300)
	v.is("send.textContent", "Send code")
}

// The settings for an app that sends by SMTP can be copied. The page has no key.
func TestSignUp_SMTPSettings_AreCopied(t *testing.T) { inEachBrowser(t, signUpSMTPSettingsAreCopied) }

func signUpSMTPSettingsAreCopied(t *testing.T, newVisitor opener) {
	const settings = "Host      127.0.0.1\nPort      2525\nSecurity  none\nUser      app\nPassword  the API key\nSender    no-reply@acme.example"
	s, v := newServer(t, nil), newVisitor(t)
	v.visit(s.URL)
	v.reads("smtp-settings", settings)
	v.run(`navigator.clipboard.writeText = async (text) => { window.copied = text; }`) // a headless browser has no clipboard
	v.click("#smtp-copy")
	v.reads("smtp-copy", "Copied")
	v.reads("announce", "Copied")
	v.is("copied", settings)
	v.is(fmt.Sprintf("document.documentElement.outerHTML.includes(%q)", apitest.APIKey), "false")
	v.looksRight("signup-smtp")
}
