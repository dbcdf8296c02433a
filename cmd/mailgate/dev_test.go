package main

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// startDev runs mailgate dev in this process and returns a client for its pages.
func startDev(t *testing.T, args ...string) (c client, stdout *output, stop func() int) {
	t.Helper()
	stdout, _, stop = within(t, nil, append([]string{"dev", "--listen=127.0.0.1:0"}, args...)...)
	url := regexp.MustCompile(`Sign up +(http://127\.0\.0\.1:\d+)/\n`)
	base := stdout.await(t, "the URL", func(text string) (string, bool) {
		found := url.FindStringSubmatch(text)
		if found == nil {
			return "", false
		}
		return found[1], true
	})
	return newClient(t, base, ""), stdout, stop
}

// A visitor signs up: a mail by real SMTP, a second try that has to wait, a wrong and
// the right code, and an operator's reset.
func TestDev(t *testing.T) {
	page, stdout, stop := startDev(t)
	visitor := `{"email":"alice@example.com","locale":"en"}`

	if sent := page.must(t, "POST", "/demo/sign-up", visitor, 200); sent.Body.Limit != "minute" || sent.Body.WaitMS != 60000 {
		t.Errorf("sent: %+v", sent.Body)
	}
	list := page.must(t, "GET", "/demo/mails?after=0", "", 200)
	if len(list.Body.Mails) != 1 || list.Body.Mails[0].To[0] != "alice@example.com" {
		t.Fatalf("the inbox: %+v", list.Body)
	}
	mail := page.must(t, "GET", fmt.Sprint("/demo/mails/", list.Body.Mails[0].ID), "", 200)
	code := sixDigits.FindString(mail.Body.Text)
	if mail.Body.From != "mailgate dev <no-reply@dev.example>" {
		t.Errorf("the mail is from %q", mail.Body.From)
	}
	if code == "" || !strings.Contains(mail.Body.Source, "Message-ID: <") {
		t.Fatalf("the mail: %+v", mail.Body)
	}
	if denied := page.must(t, "POST", "/demo/sign-up", visitor, 429); denied.Body.Limit != "minute" || denied.Body.WaitMS > 60000 {
		t.Errorf("again: %+v", denied.Body)
	}
	if standing := page.must(t, "POST", "/demo/standing", visitor, 200); standing.Body.WaitMS <= 0 {
		t.Errorf("standing: %+v", standing.Body)
	}
	page.must(t, "POST", "/demo/code", `{"email":"alice@example.com","code":"none"}`, 422)
	if wrong := page.must(t, "POST", "/demo/code", fmt.Sprintf(`{"email":"alice@example.com","code":%q}`, another(code)), 422); wrong.Body.Verified || wrong.Body.Left != 4 {
		t.Errorf("a wrong code: %+v", wrong.Body)
	}
	right := fmt.Sprintf(`{"email":"Alice@example.com","code":%q}`, code)
	if answer := page.must(t, "POST", "/demo/code", right, 200); !answer.Body.Verified {
		t.Errorf("the right code: %+v", answer.Body)
	}
	page.must(t, "POST", "/demo/code", right, 410)
	if reset := page.must(t, "POST", "/demo/reset", visitor, 200); reset.Body.Cleared != 1 {
		t.Errorf("reset: %+v", reset.Body)
	}
	page.must(t, "POST", "/demo/sign-up", visitor, 200)
	page.must(t, "POST", "/demo/mails/clear", `{}`, 200)
	page.must(t, "GET", fmt.Sprint("/demo/mails/", list.Body.Mails[0].ID), "", 404)
	page.must(t, "POST", "/demo/mails/restore", `{}`, 200)
	page.must(t, "GET", fmt.Sprint("/demo/mails/", list.Body.Mails[0].ID), "", 200)
	page.must(t, "POST", "/demo/mails/clear", `{}`, 200)
	if status := stop(); status != exitOK {
		t.Errorf("exit status %d", status)
	}
	_, lines, _ := strings.Cut(stdout.String(), "discards all records.\n\n")
	want := []string{"send-code +alice@example.com +200 sent; next in 1m \\(minute of mailbox\\)", "send-code +alice@example.com +429 quota-exceeded; next in (1m|59s) ",
		"verify-code +alice@example.com +422 code-incorrect", "verify-code +Alice@example.com +200 verified", "verify-code +Alice@example.com +410 code-expired", "send-code .* 200 sent"}
	if !regexp.MustCompile("^  [0-9:]{8}  " + strings.Join(want, ".*\n  [0-9:]{8}  ") + ".*\n$").MatchString(lines) {
		t.Errorf("one line for each send and check:\n%s", lines)
	}
}

// Where the usual port is taken dev says so, and which it took instead. Where another holds
// it, that one may let go before dev comes.
func TestDevTakesAnotherPort(t *testing.T) {
	taken, err := listen("127.0.0.1:8080")
	if err == nil {
		defer taken.Close()
	}
	stdout, _, _ := within(t, nil, "dev")
	stdout.await(t, "the port", func(text string) (string, bool) {
		if err != nil && strings.Contains(text, "http://127.0.0.1:8080/\n") {
			return "", true
		}
		return "", strings.Contains(text, "\n  127.0.0.1:8080 is in use, so this is the next free port.\n") &&
			regexp.MustCompile(`Sign up +http://127\.0\.0\.1:80[89]\d/\n`).MatchString(text)
	})
}

// another is a code that is not this.
func another(code string) string {
	if code == "000000" {
		return "000001"
	}
	return "000000"
}

// One click that arrives twice is one mail.
func TestDevClick(t *testing.T) {
	page, _, _ := startDev(t)
	const click = `{"email":"carol@example.com","click":"8e03978e-40d5-43e8-bc93-6894a57f9324"}`
	for again := range 2 {
		a := page.must(t, "POST", "/demo/sign-up", click, 200)
		if replayed := strings.Contains(a.Raw, `"replayed":true`); a.Body.Countdown == "" || a.Body.WaitMS != 60000 || replayed != (again == 1) {
			t.Errorf("%s", a.Raw)
		}
	}
	page.must(t, "POST", "/demo/sign-up", `{"email":"carol@example.com","click":"another"}`, 429)
	if list := page.must(t, "GET", "/demo/mails", "", 200); len(list.Body.Mails) != 1 {
		t.Errorf("%d mails", len(list.Body.Mails))
	}
}

// The keys that dev prints open the API on the same port, and nothing else does.
func TestDevKeys(t *testing.T) {
	page, stdout, _ := startDev(t, "--tiers=quick=1/1h")
	page.mustSend(t, "carol@example.com", 401)
	find := func(name string) string {
		return regexp.MustCompile(name + ` +(\S+)\n`).FindStringSubmatch(stdout.String())[1]
	}
	app, ops := page, page
	app.key, ops.key = find("API key"), find("Admin key")
	if sent := app.mustSend(t, "carol@example.com", 200); sent.Body.Limit != "quick" {
		t.Errorf("the tiers of the command line are not in force: %+v", sent.Body)
	}
	ops.must(t, "POST", "/admin/mailboxes/carol@example.com/reset", "", 200)
}

// Rules come from the command line, or from the environment.
func TestDevRules(t *testing.T) {
	path := write(t, t.TempDir()+"/rules.yaml", "rules: [{name: one, by: all, limit: hour=1/1h}]")
	for name, call := range map[string]struct{ environ, args []string }{
		"flag":        {nil, []string{"dev", "--listen=127.0.0.1:0", "--rules=" + path}},
		"environment": {[]string{"MAILGATE_RULES=" + path}, []string{"dev", "--listen=127.0.0.1:0"}},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, _, stop := within(t, call.environ, call.args...)
			address := stdout.await(t, "the address", func(text string) (string, bool) {
				found := regexp.MustCompile(`Rules +mailbox, client-ip, one\n(?s:.*)curl (http://\S+)/send-code`).FindStringSubmatch(text)
				if found == nil {
					return "", false
				}
				return found[1], true
			})
			page := newClient(t, address, "")
			page.must(t, "POST", "/demo/sign-up", `{"email":"alice@example.com"}`, 200)
			if refused := page.must(t, "POST", "/demo/sign-up", `{"email":"bob@example.com"}`, 429); refused.Body.Rule != "one" {
				t.Errorf("refused by %+v", refused.Body)
			}
			if status := stop(); status != exitOK {
				t.Errorf("exit status %d", status)
			}
		})
	}
}

// Each page and what it loads, with the headers that keep it to itself.
func TestDevPages(t *testing.T) {
	page, _, _ := startDev(t)
	for path, kind := range map[string]string{
		"/": "text/html", "/inbox": "text/html", "/web/style.css": "text/css", "/web/mark.svg": "image/svg+xml",
		"/web/signup.js": "text/javascript", "/web/inbox.js": "text/javascript", "/web/lengths.js": "text/javascript",
	} {
		response := page.get(t, path)
		h := response.Header
		if response.Status != 200 || !strings.HasPrefix(h.Get("Content-Type"), kind) {
			t.Errorf("%s: %d %s", path, response.Status, h.Get("Content-Type"))
		}
		if csp := h.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; script-src 'self'; style-src 'self';") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", path, csp)
		}
	}
	for _, path := range []string{"/nowhere", "/web/", "/web/nothing.js", "/web/../web", "/demo/mails/99", "/demo/mails/x"} {
		lost := page.get(t, path)
		if lost.Status != 404 || lost.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s", path, lost.Status, lost.Header.Get("Content-Type"))
		}
	}
	page.must(t, "POST", "/demo/sign-up", `{"email":"dave@example.com"}`, 200)
	id := page.must(t, "GET", "/demo/mails", "", 200).Body.Mails[0].ID
	html := page.get(t, fmt.Sprintf("/demo/mails/%d/html", id))
	if csp := html.Header.Get("Content-Security-Policy"); html.Status != 200 || !strings.HasSuffix(csp, "; sandbox allow-same-origin") || strings.Contains(csp, "script") {
		t.Errorf("a mail's HTML: %d, policy %q", html.Status, csp)
	}
}

// No page from elsewhere can reach the demo: not under another name, not by a form,
// not across sites.
func TestDevGuard(t *testing.T) {
	page, _, _ := startDev(t)
	for name, tt := range map[string]struct {
		method, path string
		header       http.Header
		status       int
	}{
		"under another name": {"GET", "/", http.Header{"Host": {"attacker.example"}}, 403},
		"as a form":          {"POST", "/demo/reset", http.Header{"Content-Type": {"text/plain"}}, 415},
		"from another site":  {"POST", "/demo/reset", http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403},
	} {
		a, err := page.fetch(tt.header, tt.method, tt.path, `{"email":"a@example.com"}`)
		if err != nil || a.Status != tt.status {
			t.Errorf("%s: %v %d, want %d", name, err, a.Status, tt.status)
		}
	}
}
