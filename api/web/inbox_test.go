package web_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// lists waits until the inbox lists these subjects.
func (tb *tab) lists(subjects string) {
	tb.t.Helper()
	tb.isTrue(fmt.Sprintf(`[...document.querySelectorAll("#mails strong")].map((line) => line.textContent).join() === %q`, subjects))
}

// opened waits until an email is open, with its subject and its text.
func (tb *tab) opened(subject string) {
	tb.t.Helper()
	tb.isTrue(fmt.Sprintf(`subject.textContent === %q && html.contentDocument?.body?.textContent.trim() === %[1]q`, subject))
}

// The focus stays on its line when an email arrives.
func TestInbox_NewEmail_KeepsTheFocus(t *testing.T) {
	s, v := newServer(t, nil), newVisitor(t)
	v.size(1280, 800)
	v.visit(s.URL + "/inbox")
	v.reads("empty", "No email yet.")
	v.looksRight("inbox-empty")
	v.visit("about:blank") // where no email that arrives is opened
	s.receives("alice@example.com", "one")
	s.receives("a.person.with.quite.a.long.name@a-company-with-a-long-name.example", "two")
	v.visit(s.URL + "/inbox")
	v.lists("two,one")
	v.opened("two")
	v.is(`document.querySelector("#mails [aria-current] strong").textContent`, "two")
	v.run(`document.querySelector("#mails li:last-child button").focus()`)
	s.receives("alice@example.com", "three")
	v.lists("three,two,one")
	v.is(`document.activeElement.querySelector("strong").textContent`, "one")
	v.reads("announce", "New email: three")
	v.reads("badge", "2")
	v.run(`document.querySelector("#mails [aria-current]").click()`) // on a phone it then replaces the list
	v.isTrue(`subject.textContent === "two"`)
	v.looksRight("inbox-open", ".badge", "#mails .new strong::before")
	v.click("#tab-source")
	v.looksRight("inbox-source")
}

// Many emails scroll beside the open one, are found by words and keys, count while they are
// unread, and come back after Clear.
func TestInbox_ManyEmails_AreFoundReadAndRestored(t *testing.T) {
	s, v := newServer(t, nil), newVisitor(t)
	for i := range 60 {
		to := fmt.Sprintf("visitor%d@example.com", i)
		if i == 30 {
			to = "a-person-with-quite-a-long-name@mail.a-company-with-a-long-name.example"
		}
		s.receives(to, fmt.Sprintf("%d is your code", 100_000+i))
	}
	for _, width := range []int64{390, 1280} {
		v.size(width, 800)
		v.visit(s.URL + "/inbox")
		v.isTrue(`document.querySelectorAll("#mails li").length === 60`)
		if high := get[float64](v, "document.documentElement.scrollHeight"); high > 1200 {
			t.Errorf("at %d px the page is %v px high", width, high)
		}
	}
	v.opened("100059 is your code")
	v.reads("badge", "59")
	for _, tt := range [][2]string{{"j", "100058"}, {kb.ArrowDown, "100057"}, {"k", "100058"}, {kb.ArrowUp, "100059"}, {"k", "100059"}} {
		v.press(tt[0])
		v.opened(tt[1] + " is your code")
	}
	v.press("/")
	v.hasFocus("search")
	v.run("search.select()") // the driver types the / although the page prevents it
	v.press("LONG-NAME code")
	v.is(`search.value + [...document.querySelectorAll("#mails li")].filter((line) => line.checkVisibility()).length`, "LONG-NAME code1")
	v.press(kb.ArrowDown)
	v.opened("100030 is your code")
	v.run(`navigator.clipboard.writeText = async (text) => { window.copied = text; }`) // a headless browser has no clipboard
	v.click("#copy")
	v.reads("copy", "Copied")
	v.is("copied", "100030")
	v.click("#clear")
	v.reads("undo", "Emails cleared.")
	v.lists("")
	v.press(kb.Enter) // Undo has the focus
	v.isTrue(`document.querySelectorAll("#mails li").length === 60`)
	v.reads("badge", "56")
}

// On a phone the email replaces the list, an address breaks before @ or a dot, the frame is as
// high as the email beside a scroll bar too, and Back leads to the list and then away.
func TestInbox_Phone_LeadsBackToTheList(t *testing.T) {
	s, v := newServer(t, nil), newVisitor(t)
	s.sendCode("a-person-with-quite-a-long-name@mail.a-company-with-a-long-name.example")
	v.size(700, 500) // a window as narrow, whose scroll bar takes room
	v.visit(s.URL + "/inbox")
	v.click("#mails button")
	v.isTrue("html.offsetParent !== null && html.contentDocument.body?.childElementCount > 0")
	v.drawn()
	v.is(`((frame, mail) => [innerWidth > document.documentElement.clientWidth, mail.scrollWidth > frame.clientWidth, mail.scrollHeight > frame.clientHeight].join())(html, html.contentDocument.documentElement)`, "true,false,false")
	v.size(390, 800)
	v.visit(s.URL)
	v.visit(s.URL + "/inbox")
	v.click("#mails button")
	v.reads("subject", "is your code")
	v.is("rcpt.innerHTML", "a-person-with-quite-a-long-name<wbr>@mail<wbr>.a-company-with-a-long-name<wbr>.example")
	v.run("history.back()")
	v.isTrue(`document.querySelector("#mails").checkVisibility()`)
	v.back(`document.querySelector("#form-title")`)
}

// hostileMail tries to run scripts, to load parts, to lead the page away, and to send a form.
const hostileMail = `<img src=x onerror="top.owned=1"><script>top.owned=1</script>` + "\r\n" + `From: "<img src=x onerror=top.owned=1>" <a@b.example>` + "\r\nContent-Type: text/html\r\n\r\n" +
	`<p id="seen">seen</p><script>top.owned=1</script><img src=/livez?image onerror="top.owned=1">
<svg onload="top.owned=1"></svg><meta http-equiv="refresh" content="0;url=/livez?refresh"><link rel="stylesheet" href="/livez?style">
<iframe src="javascript:top.owned=1"></iframe><object data="/livez?object"></object><base href="//evil.example/" target="_top">
<form id="form" action="/demo/reset" method="post"><input name="a"></form><a id="away" href="/livez?away">x</a><style>p { background: url(/livez?background) }</style>`

func TestInbox_HostileEmail_IsOnlyShown(t *testing.T) {
	s, v := newServer(t, nil), newVisitor(t)
	v.size(1280, 800)
	s.receives("victim@example.com", hostileMail)
	v.visit(s.URL + "/inbox")
	v.isTrue(`(mail => !!mail?.getElementById("away") && mail.getElementById("seen").textContent === "seen")(html.contentDocument)`)
	v.run(`((mail) => { mail.getElementById("form").submit(); mail.getElementById("away").click(); })(html.contentDocument)`)
	for _, form := range []string{"text", "source"} {
		v.do(chromedp.Click(chromedp.CSS("#tab-" + form)))
	}
	v.complains("script execution", "JavaScript URL", "form", "plugin data")
	v.is(`"owned" in window || location.pathname`, "/inbox")
	v.is(`performance.getEntriesByType("resource").map((one) => one.name).filter((name) => name.includes("livez")).join(" ")`, "")
}
