package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// The sample in docs/countdown.md holds the button for the address that was
// mailed, and not for a corrected one.
func TestCountdownSample_AddressCorrected_FreesTheButton(t *testing.T) {
	d := newDesk(t, nil)
	browser := openBrowser(t)
	for _, file := range []string{"docs/countdown.md"} {
		text := strings.ReplaceAll(string(must(os.ReadFile("../../"+file))(t)), "https://mailgate.example", d.URL)
		sample := regexp.MustCompile("(?s)```html\n(<script type=\"module\" .*?)```\n\n```js\n(.*?)```").FindStringSubmatch(text)
		if sample == nil {
			t.Fatalf("%s has no sample of the countdown", file)
		}
		page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `<!doctype html><link rel="icon" href="data:,">%s<script>const sample = (answer) => { %s };</script>`, sample[1], sample[2])
		}))
		t.Cleanup(page.Close)
		v := newVisitor(t, browser)
		v.do(chromedp.Navigate(page.URL))
		v.run(`email.value = "typo@example.com"`)
		v.run("sample(" + d.answer(`{"email":"typo@example.com"}`) + ")")
		held := func() bool { return get[bool](v, `resend.getAttribute("aria-disabled") === "true"`) }
		v.until(file+": the button is held", held)
		v.run("email.select()")
		v.do(chromedp.KeyEvent("right@example.com"))
		v.until(file+": the button is free", func() bool { return !held() })
	}
}

// answer has a code mailed and returns what mailgate answered.
func (d *desk) answer(body string) string {
	d.t.Helper()
	request := must(http.NewRequest("POST", d.URL+"/send-code", strings.NewReader(body)))(d.t)
	request.Header.Set("Authorization", "Bearer "+appKey)
	request.Header.Set("Content-Type", "application/json")
	response := must(http.DefaultClient.Do(request))(d.t)
	defer response.Body.Close()
	return string(must(io.ReadAll(response.Body))(d.t))
}
