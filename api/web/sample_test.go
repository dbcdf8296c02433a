package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The sample of docs/countdown.md holds the button for the address that was mailed, and not for a
// corrected one.
func TestCountdownSample_AddressCorrected_FreesTheButton(t *testing.T) {
	s, v := newServer(t, nil), newVisitor(t)
	text := strings.ReplaceAll(string(must(os.ReadFile("../../docs/countdown.md"))(t)), "https://mailgate.example", s.URL)
	sample := regexp.MustCompile("(?s)```html\n(<script type=\"module\" .*?)```\n\n```js\n(.*?)```").FindStringSubmatch(text)
	if sample == nil {
		t.Fatal("docs/countdown.md has no sample of the countdown")
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `<!doctype html><link rel="icon" href="data:,">%s<script>const sample = (answer) => { %s };</script>`, sample[1], sample[2])
	}))
	t.Cleanup(page.Close)
	v.visit(page.URL)
	v.run(`email.value = "typo@example.com"`)
	v.run("sample(" + s.sendCode("typo@example.com") + ")")
	v.isTrue(`resend.ariaDisabled === "true"`)
	v.types("email", "right@example.com")
	v.isTrue(`resend.ariaDisabled !== "true"`)
}
