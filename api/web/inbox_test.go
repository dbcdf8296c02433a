package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// lists waits until the inbox lists these subjects.
func (tb *tab) lists(subjects string) {
	tb.t.Helper()
	tb.isTrue(fmt.Sprintf(`[...document.querySelectorAll("#mails strong")].map((line) => line.textContent).join() === %q`, subjects))
}

// opened waits until an email is open, with its subject and its text.
func (tb *tab) opened(subject string) {
	tb.t.Helper()
	tb.isTrue(fmt.Sprintf(`subject.textContent === %q && html.contentDocument?.body?.textContent.trim() === %[1]q`, subject))
}

// The focus stays on its line when an email arrives.
func TestInbox_NewEmail_KeepsTheFocus(t *testing.T) { inEachBrowser(t, inboxNewEmailKeepsTheFocus) }

func inboxNewEmailKeepsTheFocus(t *testing.T, newVisitor opener) {
	s, v := newServer(t, nil), newVisitor(t)
	v.size(1280, 800)
	v.visit(s.URL + "/inbox")
	v.reads("empty", "No email yet.")
	v.looksRight("inbox-empty")
	v.visit("about:blank") // where no email that arrives is opened
	s.receives("alice@example.com", "one")
	s.receives("a.person.with.quite.a.long.name@a-company-with-a-long-name.example", "two")
	v.visit(s.URL + "/inbox")
	v.lists("two,one")
	v.opened("two")
	v.is(`document.querySelector("#mails [aria-current] strong").textContent`, "two")
	v.run(`document.querySelector("#mails li:last-child button").focus()`)
	s.receives("alice@example.com", "three")
	v.lists("three,two,one")
	v.is(`document.activeElement.querySelector("strong").textContent`, "one")
	v.reads("announce", "New email: three")
	v.reads("badge", "2")
	v.run(`document.querySelector("#mails [aria-current]").click()`) // on a phone it then replaces the list
	v.isTrue(`subject.textContent === "two"`)
	v.looksRight("inbox-open", ".badge", "#mails .new strong::before")
	v.click("#tab-source")
	v.looksRight("inbox-source")
}

// Many emails scroll beside the open one, are found by words and keys, count while they are
// unread, and come back after Clear.
func TestInbox_ManyEmails_AreFoundReadAndRestored(t *testing.T) {
	t.Parallel()
	inEachBrowser(t, inboxManyEmailsAreFoundReadAndRestored)
}

func inboxManyEmailsAreFoundReadAndRestored(t *testing.T, newVisitor opener) {
	s, v := newServer(t, nil), newVisitor(t)
	for i := range 60 {
		to := fmt.Sprintf("visitor%d@example.com", i)
		if i == 30 {
			to = "a-person-with-quite-a-long-name@mail.a-company-with-a-long-name.example"
		}
		s.receives(to, fmt.Sprintf("%d is your code", 100_000+i))
	}
	for _, width := range []int64{390, 1280} {
		v.size(width, 800)
		v.visit(s.URL + "/inbox")
		v.isTrue(`document.querySelectorAll("#mails li").length === 60`)
		v.picture(fmt.Sprintf("inbox-many-%d", width))
		if width < 600 { // no list in a list: the page scrolls, and nothing is cut off
			v.is("mails.scrollHeight > mails.clientHeight", "false")
		} else if high := get[float64](v, "document.documentElement.scrollHeight"); high > 1200 {
			t.Errorf("at %d px the page is %v px high", width, high)
		}
	}
	v.opened("100059 is your code")
	v.reads("badge", "59")
	for _, tt := range [][2]string{{"j", "100058"}, {kb.ArrowDown, "100057"}, {"k", "100058"}, {kb.ArrowUp, "100059"}, {"k", "100059"}} {
		v.press(tt[0])
		v.opened(tt[1] + " is your code")
	}
	v.press("/")
	v.hasFocus("search")
	v.run("search.select()") // the driver types the / although the page prevents it
	v.press("LONG-NAME code")
	v.is(`search.value + [...document.querySelectorAll("#mails li")].filter((line) => line.checkVisibility()).length`, "LONG-NAME code1")
	v.press(kb.ArrowDown)
	v.opened("100030 is your code")
	v.run(`navigator.clipboard.writeText = async (text) => { window.copied = text; }`) // a headless browser has no clipboard
	v.click("#copy")
	v.reads("copy", "Copied")
	v.is("copied", "100030")
	v.click("#clear")
	v.reads("undo", "Emails cleared.")
	v.lists("")
	v.press(kb.Enter) // Undo has the focus
	v.isTrue(`document.querySelectorAll("#mails li").length === 60`)
	v.reads("badge", "56")
}

// On a phone the email replaces the list, an address breaks before @ or a dot, the frame is as
// high as the email beside a scroll bar too, and Back leads to the list and then away.
func TestInbox_Phone_LeadsBackToTheList(t *testing.T) {
	t.Parallel()
	s, v := newServer(t, nil), newVisitor(t)
	s.sendCode("a-person-with-quite-a-long-name@mail.a-company-with-a-long-name.example")
	v.size(700, 500) // a window as narrow, whose scroll bar takes room
	v.visit(s.URL + "/inbox")
	v.click("#mails button")
	v.isTrue("html.offsetParent !== null && html.contentDocument.body?.childElementCount > 0")
	v.drawn()
	v.is(`((frame, mail) => [innerWidth > document.documentElement.clientWidth, mail.scrollWidth > frame.clientWidth, mail.scrollHeight > frame.clientHeight].join())(html, html.contentDocument.documentElement)`, "true,false,false")
	v.size(390, 800)
	v.visit(s.URL)
	v.visit(s.URL + "/inbox")
	v.click("#mails button")
	v.reads("subject", "is your code")
	v.is("rcpt.innerHTML", `<bdi><span class="part">a-person-with-quite-a-long-name</span><span class="part">@mail<wbr>.a-company-with-a-long-name.example</span></bdi>`)
	v.run("history.back()")
	v.isTrue(`document.querySelector("#mails").checkVisibility()`)
	v.back(`document.querySelector("#form-title")`)
}

// hostileMail tries to run scripts, to load parts, to lead the page away, and to send a form.
const hostileMail = `<img src=x onerror="top.owned=1"><script>top.owned=1</script>` + "\r\n" + `From: "<img src=x onerror=top.owned=1>" <a@b.example>` + "\r\nContent-Type: text/html\r\n\r\n" +
	`<p id="seen">seen</p><script>top.owned=1</script><img src=/livez?image onerror="top.owned=1">
<svg onload="top.owned=1"></svg><meta http-equiv="refresh" content="0;url=/livez?refresh"><link rel="stylesheet" href="/livez?style">
<iframe src="javascript:top.owned=1"></iframe><object data="/livez?object"></object><base href="//evil.example/" target="_top">
<form id="form" action="/demo/reset" method="post"><input name="a"></form><a id="away" href="/livez?away">x</a><style>p { background: url(/livez?background) }</style>`

func TestInbox_HostileEmail_IsOnlyShown(t *testing.T) {
	t.Parallel()
	s, v := newServer(t, nil), newVisitor(t)
	v.size(1280, 800)
	s.receives("victim@example.com", hostileMail)
	v.visit(s.URL + "/inbox")
	v.isTrue(`(mail => !!mail?.getElementById("away") && mail.getElementById("seen").textContent === "seen")(html.contentDocument)`)
	v.run(`((mail) => { mail.getElementById("form").submit(); mail.getElementById("away").click(); })(html.contentDocument)`)
	for _, form := range []string{"text", "source"} {
		v.click("#tab-" + form)
	}
	v.complains("script execution", "JavaScript URL", "form", "plugin data")
	v.is(`"owned" in window || location.pathname`, "/inbox")
	v.is(`performance.getEntriesByType("resource").map((one) => one.name).filter((name) => name.includes("livez")).join(" ")`, "")
}

// While mailgate dev is away the page says so and counts nothing. The emails of the process that comes
// back are new, and those of the one before are gone, also the open one.
func TestInbox_ServerRestarts_ClosesOldEmails(t *testing.T) {
	t.Parallel()
	inEachBrowser(t, inboxServerRestartsClosesOldEmails)
}

func inboxServerRestartsClosesOldEmails(t *testing.T, newVisitor opener) {
	s, next := newServer(t, nil), newServer(t, nil)
	away := &outage{}
	front := httptest.NewServer(away.of(s.URL))
	t.Cleanup(front.Close)
	v := newVisitor(t)
	s.receives("alice@example.com", "one")
	s.receives("alice@example.com", "two")
	v.size(1280, 800)
	v.visit(front.URL + "/inbox")
	v.opened("two")
	v.reads("badge", "1")
	away.begins()
	v.reads("lost", "Disconnected, retrying.")
	v.is("badge.hidden", "true")
	v.looksRight("inbox-lost")
	next.receives("bob@example.com", "another one")
	next.receives("bob@example.com", "another two")
	away.ends(next.URL)
	v.lists("another two,another one")
	v.isTrue(`document.getElementById("lost").hidden`)
	v.reads("announce", "New email: another two")
	v.opened("another two")
	v.is("document.body.textContent.includes('alice@example.com')", "false")
	v.complains()
}

// An outage is a proxy whose server can go away, and come back as another.
type outage struct {
	mu     sync.Mutex
	server string
	over   context.CancelFunc // ends what is in progress
	open   context.Context
}

func (o *outage) of(server string) http.Handler {
	o.ends(server)
	return &httputil.ReverseProxy{
		Transport: o,
		Rewrite:   func(*httputil.ProxyRequest) {},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler) // breaks the connection
		},
	}
}

func (o *outage) begins() { o.over() }

func (o *outage) ends(server string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.server = strings.TrimPrefix(server, "http://")
	o.open, o.over = context.WithCancel(context.Background())
}

func (o *outage) RoundTrip(r *http.Request) (*http.Response, error) {
	o.mu.Lock()
	open := o.open
	r.URL.Scheme, r.URL.Host = "http", o.server
	o.mu.Unlock()
	ctx, cancel := context.WithCancel(r.Context())
	context.AfterFunc(open, cancel)
	return http.DefaultTransport.RoundTrip(r.WithContext(ctx))
}

// An email without HTML opens as text. A subject and a name neither leave their place nor turn the words
// around them, and nothing in an email opens a connection.
func TestInbox_OddEmails_StayInTheirPlace(t *testing.T) {
	t.Parallel()
	inEachBrowser(t, inboxOddEmailsStayInTheirPlace)
}

func inboxOddEmailsStayInTheirPlace(t *testing.T, newVisitor opener) {
	s, v := newServer(t, nil), newVisitor(t)
	v.size(1280, 800)
	s.raw("alice@example.com", "From: =?utf-8?q?=E2=80=AEmoc=2Eelpmaxe=40knab?= <a@b.example>\r\nSubject: "+strings.Repeat("longest", 40)+"\r\nContent-Type: text/html\r\n\r\n"+
		`<link rel=preconnect href="http://127.0.0.1:1"><LINK rel="dns-prefetch" href="//evil.example"><p id="seen">seen`)
	v.visit(s.URL + "/inbox")
	v.isTrue(`html.contentDocument?.getElementById("seen") && subject.textContent.length === 280`)
	v.is(`html.contentDocument.querySelectorAll("link").length`, "0")
	v.is("subject.scrollWidth > subject.clientWidth || document.documentElement.scrollWidth > innerWidth", "false")
	v.is(`document.getElementById("name").textContent.length`, "17")
	v.is(`document.getElementById("name").getBoundingClientRect().right <= from.getBoundingClientRect().left`, "true")
	v.looksRight("inbox-odd")
	s.raw("alice@example.com", "Subject: plain\r\n\r\nonly text\r\n")
	v.lists("plain," + strings.Repeat("longest", 40))
	v.press("k")
	v.reads("text", "only text")
	v.is(`[document.getElementById("tab-html").hidden, document.querySelector("[aria-selected=true]").id].join()`, "true,tab-text")
	v.looksRight("inbox-plain")
}

// Each email says which way it came: by HTTP, by SMTP, or to the relay without mailgate.
func TestInbox_Emails_SayWhichWayTheyCame(t *testing.T) {
	t.Parallel()
	inEachBrowser(t, inboxEmailsSayWhichWayTheyCame)
}

func inboxEmailsSayWhichWayTheyCame(t *testing.T, newVisitor opener) {
	s, v := newServer(t, nil), newVisitor(t)
	v.size(1280, 800)
	s.sendCode("alice@example.com")
	s.raw("bob@example.com", "Received: from app.example by acme.example\r\n\twith ESMTPA id 1; Thu, 01 Jan 2026 00:00:00 +0000\r\nMessage-ID: <1@app.example>\r\nSubject: reset\r\n\r\nyour link\r\n")
	s.raw("carol@example.com", "Message-ID: <2@app.example>\r\nSubject: astray\r\n\r\nyour link\r\n")
	v.visit(s.URL + "/inbox")
	v.isTrue(`[...document.querySelectorAll("#mails .door")].map((one) => one.textContent).join() === "relay,SMTP,HTTP"`)
	for i, want := range []string{"relay, without mailgate", "SMTP", "HTTP"} {
		v.click(fmt.Sprintf("#mails li:nth-child(%d) button", i+1))
		v.isTrue(fmt.Sprintf(`document.getElementById("door").textContent === %q`, want))
	}
	v.looksRight("inbox-doors")
}

// The files of an email are named and saved, its header is a table, the whole is saved as it came, and one email is
// deleted and comes back.
func TestInbox_Attachments_NamedAndSaved(t *testing.T) {
	t.Parallel()
	inEachBrowser(t, inboxAttachmentsNamedAndSaved)
}

func inboxAttachmentsNamedAndSaved(t *testing.T, newVisitor opener) {
	s, v := newServer(t, nil), newVisitor(t)
	v.size(1280, 800)
	email := "From: =?utf-8?q?J=C3=BCrgen?= <shop@acme.example>\r\nSubject: your\r\n invoice\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n" +
		"--b\r\nContent-Type: text/plain\r\n\r\nattached\r\n" +
		"--b\r\nContent-Type: text/html; name=page.html\r\nContent-Disposition: attachment\r\n\r\n<script>top.owned=1</script>\r\n" +
		"--b\r\nContent-Type: application/pdf\r\nContent-Transfer-Encoding: base64\r\nContent-Disposition: attachment; filename*=utf-8''..%2F%E2%82%AC.pdf\r\n\r\n" +
		strings.Repeat("JVBERi0x\r\n", 1024) + "--b--\r\n"
	s.raw("alice@example.com", "Subject: nothing attached\r\n\r\ntext\r\n")
	s.raw("alice@example.com", email)
	v.visit(s.URL + "/inbox")
	v.reads("text", "attached")
	v.is(`[...document.querySelectorAll("#files p")].map((one) => one.textContent).join()`, "page.html 28 B,../€.pdf 6 KiB")
	saved := func(link string) string {
		return get[string](v, `(async () => { const saved = await fetch(document.querySelector("`+link+`").href); return saved.headers.get("Content-Type") + " " + saved.headers.get("Content-Disposition") + " " + (await saved.text()); })()`)
	}
	const octets = "application/octet-stream attachment; "
	for link, want := range map[string]string{
		"#files p:nth-child(1) a": octets + "filename=page.html <script>top.owned=1</script>",
		"#files p:nth-child(2) a": octets + "filename*=utf-8''%E2%82%AC.pdf " + strings.Repeat("%PDF-1", 1024),
		"#raw":                    octets + "filename=email-2.eml " + email,
	} {
		if got := saved(link); got != want {
			t.Errorf("%s saves %.200q, want %.200q", link, got, want)
		}
	}
	v.run(`document.querySelector("#mails [aria-current]").click()`) // on a phone it then replaces the list
	v.click("#tab-header")
	v.is(`[...document.querySelectorAll("#header > *")].slice(0, 4).map((one) => one.textContent).join("|")`, "From|Jürgen <shop@acme.example>|Subject|your invoice")
	v.looksRight("inbox-header")
	v.click("#delete")
	v.reads("undo", "Email deleted.")
	v.lists("nothing attached")
	v.press(kb.Enter) // Undo has the focus
	v.lists("your invoice,nothing attached")
	v.run(`document.querySelector("#mails li:last-child button").click()`)
	v.reads("subject", "nothing attached")
	v.is("files.checkVisibility()", "false")
}
