package web_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// axe-core finds nothing on any page, in any of its states, light, dark and on a phone.
func TestNothingKeepsPeopleOut(t *testing.T) {
	browser, axe := openBrowser(t), axe(t)
	for name, test := range map[string]func(in inspector, d *desk){
		"sign up": barriersAtSignUp, "inbox": barriersInTheInbox, "console": barriersInTheConsole, "docs": barriersInTheDocs,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, nil)
			test(inspector{newVisitor(t, browser), axe}, d)
		})
	}
}

func barriersAtSignUp(in inspector, d *desk) {
	in.do(chromedp.Navigate(d.URL + "/"))
	in.reads("said-empty", "Send a code twice")
	in.inspect("signup-empty")
	in.types("email", "nobody")
	in.reads("ask-note", "no @")
	in.forgive()
	in.inspect("signup-error")
	d.ask(`{"email":"heidi@example.com"}`)
	in.types("email", "heidi@example.com")
	in.reads("status", "429")
	in.forgive()
	in.inspect("signup-wait")
	in.types("email", "alice@example.com")
	in.reads("prove-title", "Check your email")
	in.inspect("signup-code")
	in.types("code", "12345")
	in.reads("prove-note", "six digits")
	in.forgive()
	in.types("code", wrongCode(d.code("alice@example.com")))
	in.reads("prove-note", "4 attempts left")
	in.forgive()
	in.run(`document.querySelector("#verdict details").open = true`)
	in.inspect("signup-wrong")
	in.types("code", d.code("alice@example.com"))
	in.reads("done-title", "Welcome")
	in.inspect("signup-done")
}

func barriersInTheInbox(in inspector, d *desk) {
	in.do(chromedp.Navigate(d.URL + "/inbox"))
	in.reads("empty", "No email yet.")
	in.inspect("inbox-empty")
	d.ask(`{"email":"alice@example.com"}`)
	d.ask(`{"email":"a.person.with.quite.a.long.name@a-company-with-a-long-name.example","locale":"zh"}`)
	in.until("both mails are there", func() bool { return get[int](in.tab, `document.querySelectorAll("#mails button").length`) == 2 })
	in.until("one is open", func() bool { return in.text("subject") != "" })
	in.inspect("inbox-mails")
	in.wear(looks[0])
	in.do(chromedp.Click(chromedp.CSS("#mails li:last-child button")))
	in.reads("subject", "is your code")
	for _, form := range []string{"html", "text", "source"} {
		in.run(fmt.Sprintf(`document.getElementById("tab-%s").click()`, form))
		in.inspect("inbox-" + form)
	}
}

func barriersInTheConsole(in inspector, d *desk) {
	in.do(chromedp.Navigate(d.URL + "/admin"))
	in.reads("gate-title", "Sign in")
	in.inspect("console-signed-out")
	in.types("key", "no-such-key")
	in.reads("sign-in-note", "This is not an admin key.")
	in.forgive()
	in.inspect("console-wrong-key")
	in.opens(d)
	in.reads("numbers", "Sent")
	in.inspect("console-signed-in")
	d.sent("carol@example.com", 20*time.Hour, 9*time.Hour, 5*time.Hour, 40*time.Minute, 20*time.Minute, 20*time.Second)
	d.sent("ivan@example.com", time.Hour)
	for range 3 {
		d.ask(`{"email":"grace@example.com"}`)
	}
	in.reads("refusals", "mailboxminute2")
	in.types("email", "carol@example.com")
	in.reads("found-why", "Minute")
	in.inspect("console-mailbox")
	in.run(`document.querySelector("#found details").open = true`)
	in.inspect("console-sends")
	in.types("reason", "ticket 4711")
	in.reads("confirm-text", "6 emails and the code attempts of carol@example.com")
	in.inspect("console-reset")
	in.do(chromedp.Click(chromedp.CSS("#keep")))
	in.types("tiers", "minute=1/2m,hour=2/1h,day=3/24h")
	in.reads("tried-sum", " refused in ")
	in.inspect("console-what-if")
	in.types("tiers", "hour=0/1h")
	in.reads("try-note", "must be between")
	in.forgive()
	in.types("email", "nobody")
	in.reads("look-note", "no @")
	in.forgive()
	in.inspect("console-error")
}

func barriersInTheDocs(in inspector, d *desk) {
	in.do(chromedp.Navigate(d.URL + "/docs"))
	in.inspect("docs")
	const form = `document.querySelector("#sendCode .try")`
	in.run(form + `.closest("details").open = true`)
	in.run(form + `.querySelector("[data-part=key]").select()`)
	in.do(chromedp.KeyEvent(appKey))
	in.do(chromedp.Click(chromedp.CSS("#sendCode .try button")))
	in.until("there is an answer", func() bool {
		return get[bool](in.tab, form+`.querySelector("output").textContent.includes("server_time")`)
	})
	in.inspect("docs-tried", "#sendCode")
}

// code is the one in the last mail to an address.
func (d *desk) code(email string) string {
	d.t.Helper()
	mails := d.box.List()
	for i := len(mails) - 1; i >= 0; i-- {
		if mails[i].To[0] == email {
			return sixDigits.FindString(mails[i].Text)
		}
	}
	d.t.Fatal("there is no mail")
	return ""
}

// wrongCode is another code than this.
func wrongCode(code string) string {
	if code == "000000" {
		return "000001"
	}
	return "000000"
}
