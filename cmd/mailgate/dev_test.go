package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/need"
	"github.com/mailgate/mailgate/internal/servertest"
)

// startDev runs mailgate dev in this process until the test ends, and returns a client for its
// pages.
func startDev(t *testing.T, environ []string, args ...string) (page client, stdout *servertest.Log) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stdout, log, status, ended := &servertest.Log{}, &servertest.Log{}, -1, make(chan struct{})
	go func() {
		defer close(ended)
		status = Run(ctx, append([]string{"dev"}, args...), environ, stdout, log)
	}()
	t.Cleanup(func() {
		cancel()
		if <-ended; status != exitOK {
			t.Errorf("exit status %d: %s", status, log)
		}
		leaksNothing(t, log)
	})
	url := regexp.MustCompile(`Sign up +(http://127\.0\.0\.1:\d+)/\n(?s:.*)discards`)
	servertest.Eventually(t, "the URL", func() bool {
		select {
		case <-ended:
			t.Fatal("dev has ended")
		default:
		}
		return url.MatchString(stdout.String())
	})
	return newClient(t, url.FindStringSubmatch(stdout.String())[1], ""), stdout
}

const anyPort = "--listen=127.0.0.1:0"

// devClients are clients with the keys that dev --keys prints.
func devClients(t *testing.T, page client, stdout *servertest.Log) (app, admin client) {
	t.Helper()
	keys := regexp.MustCompile(`API key +(\S+)\n +Admin key +(\S+)\n`).FindStringSubmatch(stdout.String())
	if keys == nil {
		t.Fatal(stdout)
	}
	app, admin = page, page
	app.key, admin.key = keys[1], keys[2]
	return app, admin
}

// newestMail is the first email in the inbox.
func newestMail(t *testing.T, page client) reply {
	t.Helper()
	list := page.must(t, "GET", "/demo/mails?after=0", "", 200)
	if len(list.Body.Mails) == 0 {
		t.Fatalf("the inbox: %s", list.Raw)
	}
	return page.must(t, "GET", fmt.Sprint("/demo/mails/", list.Body.Mails[0].ID), "", 200)
}

// A visitor signs up: an email by real SMTP, a second try that has to wait, a wrong and the right
// code, and a reset. One line is printed for each send and check.
func TestDev_SignUp_SendsChecksAndResets(t *testing.T) {
	t.Parallel()
	page, stdout := startDev(t, nil, anyPort)
	visitor := `{"email":"alice@example.com","locale":"en"}`

	if sent := page.must(t, "POST", "/demo/send-code", visitor, 200); sent.Body.Limit != "minute" || sent.Body.WaitMS != 60000 {
		t.Errorf("sent: %+v", sent.Body)
	}
	if list := page.must(t, "GET", "/demo/mails?after=0", "", 200); len(list.Body.Mails) != 1 {
		t.Errorf("the inbox: %s", list.Raw)
	}
	mail := newestMail(t, page)
	code := sixDigits.FindString(mail.Body.Text)
	if code == "" || mail.Body.From != "no-reply@dev.example" || mail.Body.To[0] != "alice@example.com" || !strings.Contains(mail.Body.Source, "Message-ID: <") {
		t.Fatalf("the mail: %s", mail.Raw)
	}
	if denied := page.must(t, "POST", "/demo/send-code", visitor, 429); denied.Body.Limit != "minute" || denied.Body.WaitMS > 60000 {
		t.Errorf("again: %+v", denied.Body)
	}
	if wrong := page.must(t, "POST", "/demo/verify-code", `{"email":"alice@example.com","code":"000000"}`, 422); wrong.Body.Verified || wrong.Body.Left != 4 {
		t.Errorf("a wrong code: %+v", wrong.Body)
	}
	right := fmt.Sprintf(`{"email":"Alice@example.com","code":%q}`, code)
	if answer := page.must(t, "POST", "/demo/verify-code", right, 200); !answer.Body.Verified {
		t.Errorf("the right code: %+v", answer.Body)
	}
	page.must(t, "POST", "/demo/verify-code", right, 410)
	if reset := page.must(t, "POST", "/demo/admin/mailboxes/alice@example.com/reset", "{}", 200); reset.Body.Cleared != 1 {
		t.Errorf("reset: %+v", reset.Body)
	}
	page.must(t, "POST", "/demo/send-code", visitor, 200)
	_, lines, _ := strings.Cut(stdout.String(), "discards all records.\n\n")
	want := []string{"send-code +alice@example.com +200 sent; next in 1m \\(minute of mailbox\\)", "send-code +alice@example.com +429 quota-exceeded; next in (1m|59s) ",
		"verify-code +alice@example.com +422 code-incorrect", "verify-code +Alice@example.com +200 correct", "verify-code +Alice@example.com +410 code-expired", "send-code .* 200 sent"}
	if !regexp.MustCompile("^  [0-9:]{8}  " + strings.Join(want, ".*\n  [0-9:]{8}  ") + ".*\n$").MatchString(lines) {
		t.Errorf("one line for each send and check:\n%s", lines)
	}
}

// If the usual port is in use, dev says so and takes the next free one.
func TestDev_PortInUse_TakesAnother(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:8080")
	if err != nil {
		t.Skip("another program uses the port, and may give it up at any time")
	}
	defer taken.Close()
	page, stdout := startDev(t, nil)
	if !strings.Contains(stdout.String(), "\n  127.0.0.1:8080 is in use, so this is the next free port.\n") || !regexp.MustCompile(`:80[89]\d$`).MatchString(page.url) {
		t.Error(stdout)
	}
}

// Tiers come from the command line, and rules from there or from the environment.
func TestDev_TiersAndRules_Apply(t *testing.T) {
	t.Parallel()
	rules := servertest.Write(t, t.TempDir()+"/rules.yaml", "rules: [{name: one, by: all, limit: hour=1/1h}]")
	page, stdout := startDev(t, []string{"MAILGATE_RULES=" + rules}, anyPort, "--tiers=quick=1/1h")
	if !regexp.MustCompile(`\n +Rules +mailbox, client-ip, one\n`).MatchString(stdout.String()) {
		t.Error(stdout)
	}
	if sent := page.mustSend(t, "carol@example.com", 200); sent.Body.Limit != "quick" && sent.Body.Rule != "one" {
		t.Errorf("sent: %s", sent.Raw)
	}
	if refused := page.must(t, "POST", "/demo/send-code", `{"email":"bob@example.com"}`, 429); refused.Body.Rule != "one" {
		t.Errorf("refused by %s", refused.Raw)
	}
	page.must(t, "POST", "/admin/mailboxes/carol@example.com/reset", "", 200)
}

// With --keys the API asks for the keys that dev prints. Its pages work as before, and the request that it shows has the key.
func TestDev_Keys_AreAskedFor(t *testing.T) {
	t.Parallel()
	need.Program(t, "curl")
	page, stdout := startDev(t, nil, anyPort, "--keys")
	app, admin := devClients(t, page, stdout)
	page.mustSend(t, "carol@example.com", 401)
	page.must(t, "GET", "/admin/figures", "", 401)
	app.mustSend(t, "carol@example.com", 200)
	admin.must(t, "POST", "/admin/mailboxes/carol@example.com/reset", "", 200)
	page.must(t, "POST", "/demo/send-code", `{"email":"carol@example.com"}`, 200)
	page.must(t, "POST", "/demo/admin/mailboxes/carol@example.com/reset", "{}", 200)
	shown := regexp.MustCompile(`(?m)^  curl (?:.*\\\n)*.*$`).FindString(stdout.String())
	if answer := must.Get(exec.Command("sh", "-c", shown).Output())(t); !strings.Contains(string(answer), `"status":"sent"`) {
		t.Errorf("%s: %s", shown, answer)
	}
}

func TestDev_Pages_RunOnlyTheirOwnScripts(t *testing.T) {
	t.Parallel()
	page, _ := startDev(t, nil, anyPort)
	for path, kind := range map[string]string{"/": "text/html", "/inbox": "text/html", "/web/style.css": "text/css", "/web/signup.js": "text/javascript"} {
		response := page.must(t, "GET", path, "", 200)
		csp := response.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(response.Header.Get("Content-Type"), kind) || !strings.HasPrefix(csp, "default-src 'none'; script-src 'self'; style-src 'self';") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %v", path, response.Header)
		}
	}
	for _, path := range []string{"/nowhere", "/web/", "/web/nothing.js", "/web/../web", "/demo/mails/99", "/demo/mails/x"} {
		page.must(t, "GET", path, "", 404).isProblem(t, path)
	}
}

// isProblem fails the test unless the answer is a problem document with words for people.
func (r reply) isProblem(t *testing.T, where string) {
	t.Helper()
	var problem struct {
		Type, Title, Detail string
		Status              int
	}
	err := json.Unmarshal([]byte(r.Raw), &problem)
	if err != nil || r.Header.Get("Content-Type") != "application/problem+json" || problem.Status != r.Status || problem.Type == "" || problem.Title == "" || problem.Detail == "" {
		t.Errorf("%s is no problem document: %v %s", where, r.Header, r.Raw)
	}
}

func TestDev_OtherSites_AreRefused(t *testing.T) {
	t.Parallel()
	page, _ := startDev(t, nil, anyPort)
	for name, tt := range map[string]struct {
		method, path string
		header       http.Header
		status       int
	}{
		"under another name": {"GET", "/", http.Header{"Host": {"attacker.example"}}, 403},
		"its docs":           {"GET", "/docs", http.Header{"Host": {"attacker.example"}}, 403},
		"its console":        {"GET", "/admin", http.Header{"Host": {"attacker.example"}}, 403},
		"its metrics":        {"GET", "/metrics", http.Header{"Host": {"attacker.example"}}, 403},
		"its readiness":      {"GET", "/readyz", http.Header{"Host": {"attacker.example"}}, 403},
		"no page":            {"GET", "/nowhere", http.Header{"Host": {"attacker.example"}}, 403},
		"its API":            {"POST", "/send-code", http.Header{"Host": {"attacker.example"}}, 403},
		"its own page":       {"POST", "/send-code", http.Header{"Host": {"attacker.example"}, "Origin": {"http://attacker.example"}, "Sec-Fetch-Site": {"same-origin"}}, 403},
		"another origin":     {"POST", "/send-code", http.Header{"Origin": {"http://127.0.0.1:3000"}}, 403},
		"a sibling's":        {"GET", "/mailboxes/a@example.com", http.Header{"Sec-Fetch-Site": {"same-site"}}, 403},
		"an operator's":      {"POST", "/admin/mailboxes/a@example.com/reset", http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403},
		"a request as form":  {"POST", "/send-code", http.Header{"Content-Type": {"text/plain"}}, 400},
		"through a proxy":    {"POST", "/send-code", http.Header{"X-Forwarded-For": {"203.0.113.9"}}, 403},
		"a page through it":  {"GET", "/demo/mails", http.Header{"X-Forwarded-Proto": {"https"}}, 403},
		"a name like ours":   {"GET", "/inbox", http.Header{"Host": {"127.0.0.1.attacker.example"}}, 403},
		"the inbox's":        {"POST", "/demo/mails/delete", http.Header{"Origin": {"http://evil.example"}}, 403},
		"an opaque origin":   {"POST", "/demo/mails/restore", http.Header{"Origin": {"null"}}, 403},
		"a sibling's page":   {"POST", "/demo/mails/delete", http.Header{"Sec-Fetch-Site": {"same-site"}}, 403},
		"as a form":          {"POST", "/demo/admin/mailboxes/a@example.com/reset", http.Header{"Content-Type": {"text/plain"}}, 403},
		"what curl -I asks":  {"HEAD", "/", http.Header{"Content-Type": {""}}, 200},
		"from another site":  {"POST", "/demo/admin/mailboxes/a@example.com/reset", http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403},
	} {
		r, err := page.ask(tt.method, tt.path, `{"email":"a@example.com"}`, tt.header)
		if err != nil || r.Status != tt.status {
			t.Errorf("%s: %v %d, want %d", name, err, r.Status, tt.status)
		}
		if r.Status == 403 {
			r.isProblem(t, name)
		}
	}
	page.must(t, "POST", "/demo/send-code", `{"email":"a@example.com"}`, 200) // nothing was charged
}

// A page can have its browser send any bytes to the SMTP door too, behind the headers of a request.
func TestDev_PageAsksSMTPDoor_SendsNothing(t *testing.T) {
	t.Parallel()
	page, stdout := startDev(t, nil, anyPort, "--submission-listen=127.0.0.1:0")
	at := regexp.MustCompile(`SMTP +(\S+), no password`).FindStringSubmatch(stdout.String())
	if at == nil {
		t.Fatal(stdout)
	}
	c := must.Get(net.Dial("tcp", at[1]))(t)
	defer c.Close()
	email := "EHLO x\r\nMAIL FROM:<no-reply@dev.example>\r\nRCPT TO:<alice@example.com>\r\nDATA\r\n" + submitted + ".\r\n"
	fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: %s\r\nOrigin: null\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", at[1], len(email), email)
	if said, _ := io.ReadAll(c); !strings.HasPrefix(string(said), "220 ") || strings.Contains(string(said), "250") {
		t.Errorf("%s", said)
	}
	page.must(t, "POST", "/demo/send-code", `{"email":"alice@example.com"}`, 200) // nothing was charged
}
