package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Requests are tried from the page that describes them, with the reader's key.
func TestDocsInABrowser(t *testing.T) {
	d := newDesk(t, nil)
	v := newVisitor(t, openBrowser(t))
	v.do(chromedp.Navigate(d.URL + "/docs"))
	if !get[bool](v, `new Promise((done) => {
		const icon = new Image();
		icon.onload = () => done(icon.width > 0);
		icon.onerror = () => done(false);
		icon.src = document.querySelector("link[rel=icon]").href;
	})`) {
		t.Error("the page's policy refuses its icon")
	}
	if got := get[string](v, `[...document.querySelectorAll("header a")].map((link) => link.pathname).join()`); got != "/,/admin" {
		t.Errorf("the page leads on to %q", got)
	}
	// try opens a request, fills it in, sends it and waits for what it says.
	try := func(id, key, parameter, want string) {
		t.Helper()
		form := fmt.Sprintf(`document.querySelector("#%s .try")`, id)
		v.run(form + `.closest("details").open = true`)
		v.until("the form is there", func() bool { return get[bool](v, form+".checkVisibility()") })
		for part, text := range map[string]string{"[data-part=key]": key, "[data-in=path]": parameter} {
			if text != "" {
				v.run(fmt.Sprintf(`%s.querySelector(%q).select()`, form, part))
				v.do(chromedp.KeyEvent(text))
			}
		}
		v.run(form + `.querySelector("output").textContent = ""`)
		v.do(chromedp.Click(chromedp.CSS("#" + id + " .try button")))
		v.until(id+" says "+want, func() bool {
			said := get[string](v, form+`.querySelector("output").textContent`)
			return strings.Contains(said, want) && strings.Contains(said, "x-request-id: ")
		})
	}
	try("live", "", "", `"status": "live"`)
	try("sendCode", appKey, "", `"status": "sent"`)
	try("lookAtMailbox", appKey, "Alice@example.com", `"limit": "minute"`)
	if got := get[string](v, `document.querySelector("#inspectMailbox [data-part=key]").value`); got != "" {
		t.Error("an application's key is offered to operators")
	}
	try("inspectMailbox", opsKey, "alice@example.com", `"sends": [`)
	try("sendCode", "", "", "ratelimit: ")
	v.forgive() // the browser itself reports a 429
	const send = "#live .try button"
	v.press(send, send)
	v.comesFree(send)
	v.hasTheFocus(send)
	if got := get[int](v, `document.cookie.length + localStorage.length`); got != 0 {
		t.Error("a key is kept where it should not be")
	}
}

// From wherever somebody reads every route is within reach, on the screen of a small laptop too.
func TestRoutesAreWithinReach(t *testing.T) {
	d := newDesk(t, nil)
	v := newVisitor(t, openBrowser(t))
	call(v, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 1280, Height: 720, DeviceScaleFactor: 1})
	v.do(chromedp.Navigate(d.URL + "/docs#peekAction"))
	before := get[float64](v, "scrollY")
	v.run(`document.querySelector("nav p a").focus()`)
	inspector{tab: v}.picture("docs-last-route")
	if moved := get[float64](v, "scrollY") - before; before == 0 || moved != 0 {
		t.Errorf("the page is read at %v, and moves by %v to show the last route", before, moved)
	}
}
