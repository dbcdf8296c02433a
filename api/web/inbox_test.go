package web_test

import (
	"net/smtp"
	"testing"

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
