package web_test

import (
	"testing"

	"github.com/chromedp/chromedp"
)

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
	v.do(chromedp.Click(chromedp.CSS("#forget")))
	v.reads("confirm-text", "1 mail of alice@example.com")
	v.run("letGo()")
	v.until("the page has the answer about bob", func() bool { return get[bool](v, "wasRead") })
	if title := v.text("found-title"); title != "alice@example.com" {
		t.Errorf("under the question there is %q", title)
	}
	v.do(chromedp.Click(chromedp.CSS("#forget-now")))
	v.reads("announce", "Forgotten: 1 mail and 0 guesses of alice@example.com.")
	v.reads("sends-title", "0 mails on record")
	v.types("email", "bob@example.com")
	v.reads("found-title", "bob@example.com")
	v.reads("sends-title", "1 mail on record")
}
