package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// operatorOf is the environment of an operator of a server.
func operatorOf(url string) []string {
	return []string{"MAILGATE_URL=" + url, "MAILGATE_ADMIN_KEYS=ops:" + adminKey, "MAILGATE_API_KEYS=app:" + apiKey}
}

func TestOperator_Mailbox_ShownAndReset(t *testing.T) {
	t.Parallel()
	server := startServer(t, settingsFor(startRelay(t).URL(), inMemory, "MAILGATE_SECRET=sixteen-bytes-of-chance-or-more"))
	sent := newClient(t, server.URL, apiKey).mustSend(t, "alice@example.com", 200)
	environ := operatorOf(server.URL)
	table := does(t, environ, exitOK, "mailbox 4a939a9316", "show", "alice@example.com")
	for _, line := range []string{"next        in ", "limit minute of rule mailbox", "LIMIT   USED", "hour    1 of 5   1h", "day     1 of 10  24h", "GUESSES ", "SENDS\n20", fmt.Sprint(sent.Body.ID)} {
		if !strings.Contains(table, line) {
			t.Errorf("%q is not in\n%s", line, table)
		}
	}
	for _, step := range []struct {
		args    string
		environ []string
		status  int
		says    string
	}{
		{"show --json alice@example.com", environ, exitOK, fmt.Sprintf(`"id": %q`, sent.Body.ID)},
		{"show A.lice+x@example.com --url=" + server.URL, environ[1:], exitOK, "next        now"},
		{"reset Alice@Example.com", environ, exitOK, "records cleared for mailbox 4a939a9316: 1\n"},
		{"reset alice", environ, exitFailure, "answers 422: Invalid field: The address has no @."},
		{"show a/b@example.com", environ, exitOK, "next        now"},
		{"reset alice@example.com --reason=ticket-4711", environ, exitOK, "mailbox 4a939a9316"},
		{"reset alice@example.com --reason=" + strings.Repeat("x", 501), environ, exitFailure, "reason must not exceed 500 characters."},
		{"show alice@example.com", environ[:1], exitFailure, "(no key was sent; set MAILGATE_ADMIN_KEYS)"},
		{"reset alice@example.com", environ[:1], exitFailure, "(no key was sent; set MAILGATE_ADMIN_KEYS)"},
		{"show alice@example.com", []string{environ[0], "MAILGATE_ADMIN_KEYS=ops:" + apiKey}, exitFailure, "This is an API key. This route needs an admin key."},
		{"reset alice@example.com", []string{environ[0], "MAILGATE_ADMIN_KEYS=ops:wrong-" + secret}, exitFailure, "(the key sent is the first of MAILGATE_ADMIN_KEYS)"},
		{"show alice@example.com --url=http://127.0.0.1:1", environ[1:], exitFailure, "no server answers at http://127.0.0.1:1"},
		{"show", environ, exitMisusage, "expected an email address"},
		{"show alice@example.com bob@example.com", environ, exitMisusage, "too many arguments; see mailgate show --help"},
		{"healthcheck", environ, exitOK, ""},
	} {
		does(t, step.environ, step.status, step.says, strings.Fields(step.args)...)
	}
	if audit := server.Log.Lines(`"reason":"ticket-4711"`); len(audit) != 1 || audit[0]["mailbox"] != "4a939a9316" {
		t.Errorf("the audit log has %v", audit)
	}
}

func TestOperator_Action_ShownAndReset(t *testing.T) {
	t.Parallel()
	s := startSite(t, "actions: [{name: reply, limit: hour=2/1h}]", settingsFor(startRelay(t).URL(), inMemory))
	environ, subject := operatorOf(s.URL), `user 4711/"a"`
	s.app.must(t, "POST", "/actions/reply/take", `{"subject":"user 4711/\"a\""}`, 200)
	name := regexp.MustCompile(`subject [0-9a-f]{10}`).FindString(does(t, environ, exitOK, "hour   1 of 2  1h", "show", "--action", "reply", subject))
	does(t, environ, exitOK, "hour   0 of 2  1h", "show", "--action", "reply", "user 4711")
	does(t, environ[:2], exitFailure, "set MAILGATE_API_KEYS", "show", "--action", "reply", subject)
	does(t, environ, exitOK, ": 0\n", "reset", "--action", "reply", "user 4711")
	does(t, environ, exitOK, "cleared for "+name+": 1\n", "reset", "--action=reply", subject, "--reason", "ticket 4711")
	does(t, environ, exitOK, `"action": "reply"`, "reset", "--json", "--action", "reply", "--", "--subject")
	does(t, environ, exitFailure, "answers 404", "reset", "--action", "replies", subject)
	does(t, environ, exitMisusage, "--action: ", "reset", subject, "--action")
	if audit := s.Log.Lines(`"reason":"ticket 4711"`); len(audit) != 1 || "subject "+fmt.Sprint(audit[0]["subject"]) != name || strings.Contains(s.Log.String(), "user 4711") {
		t.Errorf("the audit log has %v", audit)
	}
}

func TestOperator_Rule_ShownAndReset(t *testing.T) {
	t.Parallel()
	s := startSite(t, `rules:
- {name: mailbox, exempt: {mailboxes: ['e2e-*@example.com']}}
- {name: client-ip, limit: hour=2/1h, by: client_ip, algorithm: fixed-window}
- {name: provider, by: all, algorithm: token-bucket, limit: day=3/24h, burst: 3, keep_for_first_sends: 1}
deny: [{name: disposable, domains: [disposable.example]}]
`, settingsFor(startRelay(t).URL(), inMemory))
	environ := operatorOf(s.URL)
	send := func(email string, status int) {
		t.Helper()
		s.app.must(t, "POST", "/send-code", fmt.Sprintf(`{"email":%q,"client_ip":"2001:db8::7"}`, email), status)
	}
	send("alice@example.com", 200)
	send("bob@example.com", 200)
	send("carol@example.com", 429)
	does(t, environ, exitOK, "limits      none; the rule mailbox exempts this mailbox\n", "show", "e2e-7@example.com")
	does(t, environ, exitOK, "limit hour of rule client-ip", "show", "--rule", "client-ip", "2001:db8::8")
	does(t, environ, exitOK, ": 2\n", "reset", "--rule=client-ip", "2001:db8::9", "--reason", "ticket 4711")
	does(t, environ, exitOK, "now", "show", "--rule=client-ip", "2001:db8::9")
	send("carol@example.com", 200)
	does(t, environ, exitOK, "3 of 3", "show", "--rule", "provider")
	does(t, environ, exitOK, ": 3\n", "reset", "--rule", "provider")

	does(t, environ, exitFailure, "answers 404: Unknown rule: No rule has this name.", "reset", "--rule", "clientip", "2001:db8::7")
	for _, name := range []string{"disposable", "guesses"} { // answers call them rules
		does(t, environ, exitFailure, "(mailgate show EMAIL) says what denies a mailbox", "show", "--rule", name, "example.com")
	}
	does(t, environ, exitFailure, "This rule counts all sends as one: leave subject out.", "show", "--rule", "provider", "x")
	does(t, environ, exitFailure, "POST /admin/mailboxes/{email}/reset", "reset", "--rule", "mailbox", "alice@example.com")
	does(t, environ, exitFailure, "subject must be an IPv4 or IPv6 address.", "reset", "--rule", "client-ip", "2001:db8::/64")
	does(t, environ, exitFailure, "subject is missing.", "reset", "--rule", "client-ip")
	does(t, environ, exitMisusage, "--rule and --action can't be used together", "reset", "--rule", "client-ip", "--action", "reply", "x")
	if audit := s.Log.Lines(`"reason":"ticket 4711"`); len(audit) != 1 || audit[0]["rule"] != "client-ip" || strings.Contains(s.Log.String(), "2001:db8") {
		t.Errorf("the audit log has %v", audit)
	}
}

// What a hostile server answers is one line, and moves no cursor.
func TestOperator_HostileServer_OneLine(t *testing.T) {
	t.Parallel()
	hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"status":422,"title":"a\u001b[2J\r\nreset","detail":"b\u009b31m"}`)
	}))
	defer hostile.Close()
	_, _, stderr := run(t, []string{"MAILGATE_URL=" + hostile.URL, "MAILGATE_ADMIN_KEYS=ops:" + adminKey}, "show", "alice@example.com")
	if line := strings.TrimSuffix(stderr, "\n"); !strings.Contains(line, "answers 422: a") || strings.ContainsFunc(line, unicode.IsControl) {
		t.Errorf("stderr: %q", stderr)
	}
}

func TestServerURL_ListenAddress_AsClientsReachIt(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080", ":8080": "http://127.0.0.1:8080", "0.0.0.0:99": "http://127.0.0.1:99",
		"[::]:99": "http://127.0.0.1:99", "[::1]:99": "http://[::1]:99", "10.0.0.7:80": "http://10.0.0.7:80",
	} {
		if got := serverURL(configOf(t, nil, "--listen", listen), ""); got != want {
			t.Errorf("%s is asked at %s, want %s", listen, got, want)
		}
	}
	if got := serverURL(configOf(t, nil, "--url=https://mail.example/"), "127.0.0.1:9090"); got != "https://mail.example" {
		t.Error(got)
	}
}
