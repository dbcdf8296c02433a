package web_test

import (
	"net/smtp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// hostileMail tries whatever a mail can do to the page that shows it: run something, ask
// for something, lead the page away, or send a form.
const hostileMail = `From: "<img src=x onerror=top.owned=1>" <a@b.example>` + "\r\n" +
	`Subject: <img src=x onerror="top.owned=1"><script>top.owned=1</script>` + "\r\n" +
	"Content-Type: multipart/alternative; boundary=x\r\n\r\n" +
	"--x\r\nContent-Type: text/plain\r\n\r\n</pre><script>top.owned=1</script><img src=x onerror=top.owned=1>\r\n" +
	"--x\r\nContent-Type: text/html\r\n\r\n" + `<p id="seen">seen</p><script>top.owned=1</script><img src=/livez?image onerror="top.owned=1">
<svg onload="top.owned=1"></svg><meta http-equiv="refresh" content="0;url=/livez?refresh"><link rel="stylesheet" href="/livez?style">
<iframe src="javascript:top.owned=1"></iframe><object data="/livez?object"></object><base href="//evil.example/" target="_top">
<form id="form" action="/demo/reset" method="post"><input name="a"></form><a id="away" href="/livez?away">x</a><style>p { background: url(/livez?background) }</style>` +
	"\r\n--x--\r\n"

// A mail is shown and does nothing.
func TestAHostileMailIsOnlyShown(t *testing.T) {
	d := newDesk(t, nil)
	if err := smtp.SendMail(d.box.Addr(), nil, "a@b.example", []string{"victim@example.com"}, []byte(hostileMail)); err != nil {
		t.Fatal(err)
	}
	v := newVisitor(t, openBrowser(t))
	inspector{tab: v}.wear(look{scheme: "light", width: 1280, height: 800})
	v.do(chromedp.Navigate(d.URL + "/inbox"))
	v.until("the mail is open, to its end", func() bool {
		return get[bool](v, `(mail => mail?.getElementById("away") && mail.getElementById("seen").textContent === "seen")(document.getElementById("html").contentDocument) === true`)
	})
	v.run(`((mail) => { mail.getElementById("form").submit(); mail.getElementById("away").click(); })(document.getElementById("html").contentDocument)`)
	for _, form := range []string{"text", "source", "html"} {
		v.run(`document.getElementById("tab-` + form + `").click()`)
	}
	v.until("the browser has refused its scripts and its form", func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		said := strings.Join(v.complaints, "\n")
		return strings.Contains(said, "script execution") && strings.Contains(said, "JavaScript URL") && strings.Contains(said, "form") && strings.Count(said, "plugin data") == 2 // again when its tab is shown again
	})
	if v.forgive(); get[bool](v, `"owned" in window`) || get[string](v, `location.pathname`) != "/inbox" {
		t.Error("the mail did something")
	}
	if asked := get[string](v, `performance.getEntriesByType("resource").map((one) => one.name).filter((name) => name.includes("livez")).join(" ")`); asked != "" {
		t.Errorf("the mail had the page ask for %s", asked)
	}
}
