package web_test

import (
	"net/smtp"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
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
	v.reads("announce", "A mail arrived: first")
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
	tb.isOpen("two")
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
		v.reads("empty", "No mail yet.")
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
