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
