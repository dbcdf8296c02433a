package web_test

import (
	"fmt"
	"net/smtp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The line under the focus stays where it is when a mail arrives, and the inbox goes on with
// the next mailgate dev, whose first mail has the number of the last one's first.
func theInboxGoesOn(t *testing.T, v *tab, d *desk) {
	arrives := func(subject string) {
		t.Helper()
		if err := smtp.SendMail(d.box.Addr(), nil, "a@b.example", []string{"alice@example.com"}, []byte("Subject: "+subject+"\r\n\r\nHello\r\n")); err != nil {
			t.Fatal(err)
		}
	}
	lists := func(want string) {
		t.Helper()
		v.until("the inbox lists "+want, func() bool {
			return get[string](v, `[...document.querySelectorAll("#mails strong")].map((line) => line.textContent).join()`) == want
		})
	}
	arrives("one")
	arrives("two")
	inspector{tab: v}.wear(look{scheme: "light", width: 1280, height: 800})
	v.do(chromedp.Navigate(d.URL + "/inbox"))
	if !get[bool](v, `fetch(location).then((page) => page.text()).then((page) => new DOMParser().parseFromString(page, "text/html").getElementById("empty").hidden)`) {
		t.Error("the page says that there is no mail before it has asked")
	}
	lists("two,one")
	v.until("the newest is open", func() bool { return get[string](v, "subject.textContent") == "two" })
	v.until("its line says so", func() bool {
		return get[string](v, `document.querySelector("#mails [aria-current] strong")?.textContent ?? ""`) == "two"
	})
	v.run(`document.querySelector("#mails li:last-child button").focus()`)
	arrives("three")
	lists("three,two,one")
	if got := get[string](v, `document.activeElement.querySelector("strong")?.textContent ?? document.activeElement.tagName`); got != "one" {
		t.Errorf("the focus is on %s", got)
	}
	d.startsAnew()
	arrives("first")
	lists("first")
	v.reads("announce", "New email: first")
	v.reads("badge", "1")
	if n := get[int](v, `document.querySelectorAll("#mails [aria-current]").length`); n != 0 {
		t.Error("a mail of the last process seems to be open")
	}
}

// hasMails has two mails in the inbox, and the newer open.
func (tb *tab) hasMails(d *desk) {
	tb.t.Helper()
	for _, subject := range []string{"one", "two"} {
		if err := smtp.SendMail(d.box.Addr(), nil, "a@b.example", []string{"alice@example.com"}, []byte("Subject: "+subject+"\r\nContent-Type: text/html\r\n\r\n<p>"+subject+"</p>\r\n")); err != nil {
			tb.t.Fatal(err)
		}
	}
	tb.do(chromedp.Navigate(d.URL+"/"), chromedp.Navigate(d.URL+"/inbox"))
	tb.until("the emails are there", func() bool { return get[int](tb, `document.querySelectorAll("#mails li").length`) == 2 })
	if get[bool](tb, `matchMedia("(min-width: 53rem)").matches`) {
		tb.isOpen("two")
	}
}

// isOpen waits until a mail is open, its heading and its text.
func (tb *tab) isOpen(want string) {
	tb.t.Helper()
	tb.until(want+" is open", func() bool {
		return get[string](tb, `subject.textContent + html.contentDocument?.body?.textContent.trim()`) == want+want
	})
}

// Back leads to the page before, where there is room for the list and the mail, however many
// mails were opened. Where there is none it leads to the list first.
func theWayBackFromTheInbox(t *testing.T, v *tab, d *desk) {
	for _, width := range []int64{1280, 390} {
		call(v, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 800, DeviceScaleFactor: 1})
		v.hasMails(d)
		for _, place := range []string{"last", "first", "last"} {
			v.do(chromedp.Click(chromedp.CSS("#mails li:" + place + "-child button")))
			v.isOpen(map[string]string{"last": "one", "first": "two"}[place])
			if width < 600 {
				v.run("history.back()")
				v.until("the list is there", func() bool { return get[bool](v, `document.querySelector("#mails").checkVisibility()`) })
			}
		}
		v.back()
		v.reads("form-title", "Create your account")
		v.do(chromedp.Navigate(d.URL + "/inbox"))
		v.do(chromedp.Click(chromedp.CSS("#clear")))
		v.reads("undo", "Emails cleared.")
	}
}

// Who has gone on to another mail, or has cleared all, is not shown the one before.
func aMailThatIsSlowToOpen(t *testing.T, v *tab, d *desk) {
	v.hasMails(d)
	v.run(`(() => {
		const ask = window.fetch;
		const slow = ask("/demo/mails/1");
		const gate = new Promise((open) => { window.arrive = async () => {
			open();
			await slow;
			return new Promise((done) => setTimeout(() => done(true)));
		}; });
		window.fetch = (path, ...rest) => path === "/demo/mails/1" ? gate.then(() => slow).then((one) => one.clone()) : ask(path, ...rest);
	})()`)
	v.run(`document.querySelector("#mails li:last-child button").click()`)
	v.run(`document.querySelector("#mails li:first-child button").click()`)
	get[bool](v, "arrive()")
	v.isOpen("two")
	if got := get[string](v, `document.querySelector("#mails [aria-current] strong").textContent`); got != "two" {
		t.Errorf("the list says that %s is open", got)
	}
}

// Many emails scroll beside the open one, are found by words and keys, count while they are
// unread, and come back after Clear.
func aFullInbox(t *testing.T, v *tab, d *desk) {
	for i := range 60 {
		to := fmt.Sprintf("visitor%d@example.com", i)
		if i == 30 {
			to = "a-person-with-quite-a-long-name@mail.a-company-with-a-long-name.example"
		}
		if err := smtp.SendMail(d.box.Addr(), nil, "a@b.example", []string{to}, []byte(fmt.Sprintf("Subject: %d is your code\r\n\r\nHello\r\n", 100000+i))); err != nil {
			t.Fatal(err)
		}
	}
	reads := func(subject string) {
		t.Helper()
		v.until(subject+" is open", func() bool { return v.text("subject") == subject+" is your code" })
	}
	for _, width := range []int64{390, 1280} {
		inspector{tab: v}.wear(look{scheme: "light", width: width, height: 800})
		v.do(chromedp.Navigate(d.URL + "/inbox"))
		v.reads("badge", "60")
		if high := get[float64](v, "document.documentElement.scrollHeight"); high > 1200 {
			t.Errorf("at %d px the page is %v px high", width, high)
		}
	}
	reads("100059")
	v.reads("badge", "59")
	for _, tt := range [][2]string{{"j", "100058"}, {kb.ArrowDown, "100057"}, {"k", "100058"}, {kb.ArrowUp, "100059"}, {"k", "100059"}} {
		v.do(chromedp.KeyEvent(tt[0]))
		reads(tt[1])
	}
	v.reads("badge", "57")
	v.do(chromedp.KeyEvent("/"))
	if id := v.focused(); id != "search" {
		t.Errorf("the focus is on #%s", id)
	}
	v.run("search.select()") // the driver types the / although the page prevents it
	v.do(chromedp.KeyEvent("LONG-NAME code"))
	if got := get[string](v, `search.value + [...document.querySelectorAll("#mails li")].filter((line) => line.checkVisibility()).length`); got != "LONG-NAME code1" {
		t.Errorf("searching gives %q", got)
	}
	v.do(chromedp.KeyEvent(kb.ArrowDown))
	reads("100030")
	inspector{tab: v}.wear(look{scheme: "light", width: 390, height: 800})
	v.run(`document.querySelector("#columns").classList.add("reading")`)
	const breaks = `(() => {
		const text = rcpt.textContent, tops = [];
		const nodes = document.createTreeWalker(rcpt, NodeFilter.SHOW_TEXT);
		for (let node = nodes.nextNode(); node; node = nodes.nextNode()) {
			for (let i = 0; i < node.length; i++) {
				const range = document.createRange();
				range.setStart(node, i);
				range.setEnd(node, i + 1);
				tops.push(range.getBoundingClientRect().top);
			}
		}
		return [...text].filter((_, i) => i > 0 && tops[i] > tops[i - 1] && text[i - 1] !== "-").join("");
	})()`
	if got := get[string](v, breaks); got == "" || strings.Trim(got, "@.") != "" {
		t.Errorf("the lines of an address begin with %q", got)
	}
	inspector{tab: v}.wear(look{scheme: "light", width: 1280, height: 800})
	v.run(`navigator.clipboard.writeText = async (text) => { window.copied = text; }`) // headless, it has no clipboard
	v.do(chromedp.Click(chromedp.CSS("#copy")))
	v.reads("copy", "Copied")
	if got := get[string](v, "copied"); got != "100030" {
		t.Errorf("copied %q", got)
	}
	v.do(chromedp.Click(chromedp.CSS("#clear")))
	v.reads("undo", "Emails cleared.")
	if n := get[int](v, `document.querySelectorAll("#mails li").length`); n != 0 || v.text("badge") != "" {
		t.Errorf("%d emails after Clear, and the badge says %q", n, v.text("badge"))
	}
	v.do(chromedp.KeyEvent(kb.Enter)) // Undo has the focus
	v.until("the emails are back", func() bool { return get[int](v, `document.querySelectorAll("#mails li").length`) == 60 })
	v.reads("badge", "56")
}

// A mail is as high as its frame and as wide, also where the page's own scroll bar takes room
// that it had when the mail was measured.
func TestAMailBesideAScrollBar(t *testing.T) {
	d := newDesk(t, nil)
	d.ask(`{"email":"alice@example.com"}`)
	v := newVisitor(t, openBrowser(t, chromedp.Flag("hide-scrollbars", false)))
	call(v, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 390, Height: 600, DeviceScaleFactor: 1})
	v.do(chromedp.Navigate(d.URL + "/inbox"))
	v.until("the mail is there", func() bool { return get[int](v, `document.querySelectorAll("#mails button").length`) == 1 })
	v.do(chromedp.Click(chromedp.CSS("#mails button")))
	v.until("it is open", func() bool {
		return get[bool](v, `html.offsetParent !== null && html.contentDocument.body?.childElementCount > 0`)
	})
	v.drawn()
	if get[float64](v, `innerWidth - document.documentElement.clientWidth`) == 0 {
		t.Fatal("the page has no scroll bar that takes room")
	}
	const left = `((frame, mail) => [mail.scrollWidth - frame.clientWidth, mail.scrollHeight - frame.clientHeight, frame.clientWidth - mail.clientWidth])(html, html.contentDocument.documentElement)`
	if over := get[[]float64](v, left); slices.Max(over) > 0 {
		t.Errorf("the mail is %v px wider and %v px higher than its frame, whose scroll bar takes %v px", over[0], over[1], over[2])
	}
}
