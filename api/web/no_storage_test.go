package web_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// Who blocks all cookies, and with them whatever else a site may store, signs up and opens the
// console all the same. Only what is loaded again starts afresh.
func TestWhereNothingIsStored(t *testing.T) {
	browser := openBrowser(t, allCookiesBlocked(t))
	for name, test := range map[string]func(v *tab, d *desk){
		"sign up": signingUpUnremembered, "console": signingInUnremembered, "docs": tryingUnremembered,
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, nil)
			test(newVisitor(t, browser), d)
		})
	}
}

func allCookiesBlocked(t *testing.T) chromedp.ExecAllocatorOption {
	t.Helper()
	profile := t.TempDir()
	preferences := filepath.Join(profile, "Default", "Preferences")
	if err := os.Mkdir(filepath.Dir(preferences), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(preferences, []byte(`{"profile":{"default_content_setting_values":{"cookies":2}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return chromedp.UserDataDir(profile)
}

// mayNotStore makes sure that the page is refused what this is about.
func (tb *tab) mayNotStore() {
	tb.t.Helper()
	if got := get[string](tb, `(() => { try { return "stored " + sessionStorage.length } catch (error) { return error.name } })()`); got != "SecurityError" {
		tb.t.Fatalf("the browser lets the page store: %s", got)
	}
}

func signingUpUnremembered(v *tab, d *desk) {
	v.asksFor(d, "alice@example.com")
	v.mayNotStore()
	v.waits("One email a minute. Next in 1:00.")
	v.do(chromedp.Reload())
	v.reads("form-title", "Create your account")
	v.types("email", "bob@example.com")
	v.reads("to", "bob@example.com")
	v.do(chromedp.Click(chromedp.CSS("#other")))
	v.reads("form-title", "Create your account")
	v.types("email", "carol@example.com")
	v.reads("to", "carol@example.com")
	v.types("code", d.code("carol@example.com"))
	v.reads("done-title", "Welcome")
	v.do(chromedp.Click(chromedp.CSS("#restart")))
	v.reads("form-title", "Create your account")
}

func signingInUnremembered(v *tab, d *desk) {
	v.opens(d)
	v.mayNotStore()
	v.types("email", "alice@example.com")
	v.reads("found-title", "alice@example.com")
	v.do(chromedp.Click(chromedp.CSS("#sign-out")))
	v.reads("gate-title", "Sign in")
	v.opens(d)
	v.do(chromedp.Reload())
	v.reads("gate-title", "Sign in")
}

func tryingUnremembered(v *tab, d *desk) {
	v.do(chromedp.Navigate(d.URL + "/docs"))
	v.mayNotStore()
	v.run(`document.querySelector("#sendCode .trial").open = true`)
	v.do(chromedp.SendKeys(chromedp.CSS("#sendCode [data-part=key]"), appKey))
	v.run(`document.querySelector("#lookAtMailbox .trial").open = true`)
	v.until("the key is there for the next request", func() bool {
		return get[string](v, `document.querySelector("#lookAtMailbox [data-part=key]").value`) == appKey
	})
}
