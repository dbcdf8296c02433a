package web_test

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Who has told the browser to write twice as large reads every page so, and on the narrowest
// phone scrolls in one direction alone.
func TestInLargeLetters(t *testing.T) {
	d := newDesk(t, nil)
	v := newVisitor(t, openBrowser(t, chromedp.Flag("blink-settings", "defaultFontSize=32")))
	call(v, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 320, Height: 800, DeviceScaleFactor: 1})
	fits := func(state string) {
		t.Helper()
		inspector{tab: v}.picture("large-" + state)
		if size := get[string](v, `getComputedStyle(document.querySelector("main p")).fontSize`); size != "32px" {
			t.Errorf("%s: the letters are %s high", state, size)
		}
		if wide := get[float64](v, tooWide); wide > 0 {
			t.Errorf("%s: the page is %v px too wide, by %s", state, wide, get[[]string](v, `[...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > document.documentElement.clientWidth).map((one) => one.outerHTML.slice(0, 60))`))
		}
		if cut := get[[]string](v, `[...document.querySelectorAll("button")].filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent)`); len(cut) > 0 {
			t.Errorf("%s: wider than their buttons are %q", state, cut)
		}
	}
	v.asksFor(d, "a.person.with.quite.a.long.name@example.com")
	v.run(`document.querySelector("#code").value = "482913"`)
	fits("signup")
	if !get[bool](v, `(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth)(document.querySelector("#code"))`) {
		t.Error("of a code that is typed not all is seen")
	}
	v.do(chromedp.Navigate(d.URL + "/inbox"))
	v.until("the mail is there", func() bool { return get[bool](v, `!!document.querySelector("#mails button")`) })
	fits("inbox")
	v.do(chromedp.Click(chromedp.CSS("#mails button")))
	v.until("it is open", func() bool { return get[bool](v, `!!document.querySelector(".reading")`) })
	fits("mail")
	v.do(chromedp.Navigate(d.URL + "/docs"))
	v.run(`document.querySelectorAll("details").forEach((one) => { one.open = true; })`)
	fits("docs")
	v.opens(d)
	v.types("email", "a.person.with.quite.a.long.name@example.com")
	v.reads("found-title", "a.person.with")
	fits("console")
}
