package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"github.com/alecthomas/kong"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

// configOf is the settings of serve with these flags.
func configOf(t testing.TB, environ []string, flags ...string) *config.Config {
	t.Helper()
	var line commandLine
	parser, err := kong.New(&line, config.Options(environ)...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(append([]string{"serve"}, flags...)); err != nil {
		t.Fatal(err)
	}
	return &line.Config
}

// does fails the test unless a command line ends with this status and prints these words.
func does(t testing.TB, environ []string, status int, says string, args ...string) (stdout string) {
	t.Helper()
	got, stdout, stderr := run(t, environ, args...)
	if got != status || !strings.Contains(stdout+stderr, says) {
		t.Errorf("%q: status %d, want %d and %q:\n%s%s", args, got, status, says, stdout, stderr)
	}
	if strings.Contains(stderr, "@example") || strings.Contains(stderr, "2001:db8") {
		t.Errorf("%q: an address is in an error: %s", args, stderr)
	}
	return stdout
}

func TestOperator_HostileServer_OneLine(t *testing.T) {
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

// operatorOf is the environment of an operator of a server.
func operatorOf(url string) []string {
	return []string{"MAILGATE_URL=" + url, "MAILGATE_ADMIN_KEYS=ops:" + adminKey, "MAILGATE_API_KEYS=app:" + apiKey}
}

func TestOperator_Mailbox(t *testing.T) {
	relay := startRelay(t, sandbox.Options{})
	server := startServer(t, settingsFor(relay.URL(), "MAILGATE_DATA_DIR=:memory:", "MAILGATE_SECRET=sixteen-bytes-of-chance-or-more"))
	sent := newClient(t, server.URL, apiKey).mustSend(t, "alice@example.com", 200)
	environ := operatorOf(server.URL)
	table := does(t, environ, exitOK, "mailbox 8555ce41e4", "show", "alice@example.com")
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
		{"reset Alice@Example.com", environ, exitOK, "cleared 1 of mailbox 8555ce41e4\n"},
		{"reset --json alice@example.com", environ, exitOK, `"cleared": 0`},
		{"reset alice", environ, exitFailure, "answers 422: Invalid field: The address has no @."},
		{"show a/b@example.com", environ, exitOK, "next        now"},
		{"reset alice@example.com --reason=ticket-4711", environ, exitOK, "mailbox 8555ce41e4"},
		{"reset --reason ticket-4712 alice@example.com", environ, exitOK, "cleared 0"},
		{"reset alice@example.com --reason=" + strings.Repeat("x", 501), environ, exitFailure, "reason may have 500 characters."},
		{"reset alice@example.com", environ[:1], exitFailure, "answers 401"},
		{"show alice@example.com", environ[:1], exitFailure, "first of MAILGATE_ADMIN_KEYS"},
		{"show alice@example.com", []string{environ[0], "MAILGATE_ADMIN_KEYS=ops:" + apiKey}, exitFailure, "This is the key of a back end. This route needs the key of an operator."},
		{"reset alice@example.com", []string{environ[0], "MAILGATE_ADMIN_KEYS=ops:wrong-" + secret}, exitFailure, "answers 401"},
		{"show alice@example.com --url=http://127.0.0.1:1", environ[1:], exitFailure, "no server answers at http://127.0.0.1:1"},
		{"show", environ, exitMisusage, "which one? give an email address"},
		{"show alice@example.com bob@example.com", environ, exitMisusage, "too many arguments; see mailgate show --help"},
		{"reset -- alice@example.com --reason=x", environ, exitMisusage, "too many arguments"},
		{"healthcheck", environ, exitOK, ""},
		{"healthcheck --url=http://127.0.0.1:1", nil, exitFailure, "no server answers"},
	} {
		does(t, step.environ, step.status, step.says, strings.Fields(step.args)...)
	}
	for _, reason := range []string{`"reason":"ticket-4711"`, `"reason":"ticket-4712"`, `"mailbox":"8555ce41e4"`} {
		server.log.await(t, reason, func(log string) (string, bool) { return "", strings.Contains(log, reason) })
	}
}

func TestOperator_Action(t *testing.T) {
	s := startSite(t, "actions: [{name: reply, limit: hour=2/1h}]", "MAILGATE_DATA_DIR=:memory:")
	environ, subject := operatorOf(s.URL), `user 4711/"a"`
	s.app.must(t, "POST", "/actions/reply/take", `{"subject":"user 4711/\"a\""}`, 200)
	does(t, environ, exitOK, "hour   1 of 2  1h", "show", "--action", "reply", subject)
	does(t, environ, exitOK, "hour   0 of 2  1h", "show", "--action", "reply", "user 4711")
	does(t, environ[:2], exitFailure, "first of MAILGATE_API_KEYS", "show", "--action", "reply", subject)
	does(t, environ, exitOK, "cleared 0", "reset", "--action", "reply", "user 4711")
	does(t, environ, exitOK, "cleared 1", "reset", "--action=reply", subject, "--reason", "ticket 4711")
	does(t, environ, exitOK, `"action": "reply"`, "reset", "--json", "--action", "reply", "--", "--subject")
	does(t, environ, exitFailure, "answers 404", "reset", "--action", "replies", subject)
	does(t, environ, exitMisusage, "which one?", "reset", "--action", "reply")
	does(t, environ, exitMisusage, "--action: ", "reset", subject, "--action")
	s.log.await(t, "the audit", func(log string) (string, bool) {
		return "", strings.Contains(log, `"action":"reply"`) && strings.Contains(log, `"reason":"ticket 4711"`) && !strings.Contains(log, "user 4711")
	})
}

func TestOperator_Rule(t *testing.T) {
	s := startSite(t, `rules:
- {name: client-ip, limit: hour=2/1h, by: client_ip, algorithm: fixed-window}
- {name: provider, by: all, algorithm: token-bucket, limit: day=3/24h, burst: 3, keep_for_first_sends: 1}
`, "MAILGATE_DATA_DIR=:memory:")
	environ := operatorOf(s.URL)
	send := func(email string, status int) {
		t.Helper()
		s.app.must(t, "POST", "/send-code", fmt.Sprintf(`{"email":%q,"client_ip":"2001:db8::7"}`, email), status)
	}
	send("alice@example.com", 200)
	send("bob@example.com", 200)
	send("carol@example.com", 429)
	does(t, environ, exitOK, "limit hour of rule client-ip", "show", "--rule", "client-ip", "2001:db8::8")
	does(t, environ, exitOK, "cleared 0", "reset", "--rule", "client-ip", "198.51.100.7")
	does(t, environ, exitOK, "cleared 2", "reset", "--rule=client-ip", "2001:db8::9", "--reason", "ticket 4711")
	does(t, environ, exitOK, "now", "show", "--rule=client-ip", "2001:db8::9")
	send("carol@example.com", 200)
	send("dave@example.com", 429)
	does(t, environ, exitOK, "3 of 3", "show", "--rule", "provider")
	does(t, environ, exitOK, "cleared 3", "reset", "--rule", "provider")
	send("dave@example.com", 200)
	send("alice@example.com", 429) // her own minute is not over

	does(t, environ, exitFailure, "answers 404: Unknown rule: No rule has this name.", "reset", "--rule", "clientip", "2001:db8::7")
	does(t, environ, exitFailure, "POST /admin/mailboxes/{email}/reset", "reset", "--rule", "mailbox", "alice@example.com")
	does(t, environ, exitFailure, "subject must be an IPv4 or IPv6 address.", "reset", "--rule", "client-ip", "2001:db8::/64")
	does(t, environ, exitFailure, "subject is missing.", "reset", "--rule", "client-ip")
	does(t, environ, exitFailure, "leave subject out", "reset", "--rule", "provider", "2001:db8::7")
	does(t, environ, exitMisusage, "too many arguments", "reset", "--rule", "client-ip", "2001:db8::7", "2001:db8::8")
	does(t, environ, exitMisusage, "--rule and --action can't be used together", "reset", "--rule", "client-ip", "--action", "reply", "x")
	s.log.await(t, "the audit", func(log string) (string, bool) {
		return "", strings.Contains(log, `"rule":"client-ip"`) && strings.Contains(log, `"reason":"ticket 4711"`) && !strings.Contains(log, "2001:db8")
	})
}

func TestShow_ExemptMailbox_SaysSo(t *testing.T) {
	s := startSite(t, "rules: [{name: mailbox, exempt: {mailboxes: ['e2e-*@example.com']}}]", "MAILGATE_DATA_DIR=:memory:")
	for address, want := range map[string]bool{"e2e-7@example.com": true, "alice@example.com": false} {
		stdout := does(t, operatorOf(s.URL), exitOK, "next", "show", address)
		if said := strings.Contains(stdout, "limits      none; the rule mailbox exempts this mailbox\n"); said != want {
			t.Errorf("%s: %s", address, stdout)
		}
		if asJSON := does(t, operatorOf(s.URL), exitOK, "", "show", "--json", address); !json.Valid([]byte(asJSON)) {
			t.Errorf("%s: %s", address, asJSON)
		}
	}
}

func TestListen_IPv4_OnlyIPv4(t *testing.T) {
	for address, want := range map[string]string{"127.0.0.1:0": "127.0.0.1", "0.0.0.0:0": "0.0.0.0", ":0": "::"} {
		listener, err := listen(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := listener.Addr().(*net.TCPAddr).IP.String(); got != want {
			t.Errorf("%s listens on %s, want %s", address, got, want)
		}
		listener.Close()
	}
}

func TestServerURL(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080", ":8080": "http://127.0.0.1:8080", "0.0.0.0:99": "http://127.0.0.1:99",
		"[::]:99": "http://127.0.0.1:99", "[::1]:99": "http://[::1]:99", "10.0.0.7:80": "http://10.0.0.7:80",
	} {
		if got := serverURL(configOf(t, nil, "--listen", listen), false); got != want {
			t.Errorf("%s is asked at %s, want %s", listen, got, want)
		}
	}
	if got := serverURL(configOf(t, nil, "--url=https://mail.example/"), true); got != "https://mail.example" {
		t.Error(got)
	}
}

func TestTestMail(t *testing.T) {
	relay := startRelay(t, sandbox.Options{})
	does(t, settingsFor(relay.URL(), "MAILGATE_LOCALE=zh"), exitOK, "accepted by "+relay.Addr()+": 250", "test-mail", "alice@example.com")
	if mails := relay.List(); len(mails) != 1 || !strings.Contains(mails[0].Subject, "验证码") {
		t.Errorf("%d mails", len(mails))
	}
	does(t, settingsFor(relay.URL()), exitMisusage, "invalid recipient", "test-mail", "alice")
	broken := startFaulty(t, fault.Script{At: fault.RCPT, Kind: fault.Permanent})
	does(t, settingsFor(plain(broken)), exitFailure, "554", "test-mail", "alice@example.com")
}

func TestCheckConfig_ShowsSourcesAndNoSecret(t *testing.T) {
	file := write(t, t.TempDir()+"/m.yaml", "locale: zh\n")
	environ := settingsFor("smtps://user:"+secret+"@relay.example", "MAILGATE_CONFIG="+file,
		"MAILGATE_REDIS_URL=redis://:"+secret+"@redis.example", "MAILGATE_SYNC=true", shared)
	status, stdout, stderr := run(t, environ, "check-config", "--tiers=q=1/1s", "--rules="+deployed+"rules.yaml")
	if status != exitOK || stderr != "" {
		t.Fatalf("status %d: %s", status, stderr)
	}
	lines, notes := map[string]string{}, ""
	for line := range strings.Lines(stdout) {
		name, rest, _ := strings.Cut(line, " ")
		if name == "note:" {
			notes += rest
		}
		lines[name] = strings.Join(strings.Fields(rest), " ")
	}
	for name, want := range map[string]string{
		"tiers":     "q=1/1s flag --tiers",
		"locale":    "zh file " + file + ":1: locale",
		"smtp_url":  "smtps://relay.example:465 environment MAILGATE_SMTP_URL",
		"redis_url": "redis://***@redis.example environment MAILGATE_REDIS_URL",
		"secret":    "*** environment MAILGATE_SECRET",
		"api_keys":  "app:*** environment MAILGATE_API_KEYS",
		"fold":      "true default",
		"templates": "(not set) default",
		"data_dir":  "(not set) default",
		"mailbox":   "by mailbox sliding-log q=1/1s; exempt mailboxes: 2",
		"client-ip": "by client_ip sliding-window minute=100/60s in parts of 1000 ms; exempt networks: 1; exempt api keys: 1",
		"provider":  "by all fixed-window day=50000/24h; the last 5000 for first sends",
		"callers":   "by api_key token-bucket second=20/1s, bursts of 100; shadow, refuses nothing",
		"reply":     "sliding-log minute=10/60s,hour=100/1h",
	} {
		if lines[name] != want {
			t.Errorf("%s is shown as %q, want %q", name, lines[name], want)
		}
	}
	for _, want := range []string{"MAILGATE_SYNC has no effect", "data_dir is not set", "the rule client-ip exempts API keys that are not set: batch"} {
		if !strings.Contains(notes, want) || strings.Count(notes, "\n") != 4 {
			t.Errorf("%q is not in the notes:\n%s", want, notes)
		}
	}
	for _, setting := range configOf(t, nil).Settings() {
		if lines[setting.Name] == "" {
			t.Errorf("%s is not shown", setting.Name)
		}
	}
	shadow := write(t, t.TempDir()+"/rules.yaml", "rules: [{name: mailbox, shadow: true}]")
	does(t, settingsFor("smtps://relay.example"), exitOK, "\nnote: THE RULE MAILBOX IS IN SHADOW", "check-config", "--rules="+shadow)
}

func TestUnknownVariable_WarnsAndSuggests(t *testing.T) {
	relay := startRelay(t, sandbox.Options{})
	environ := settingsFor(relay.URL(), "MAILGATE_DATA_DIR=:memory:", "MAILGATE_LOCAL=zh", "MAILGATE_SERVICE_HOST=10.0.0.1")
	status, _, stderr := run(t, environ, "check-config")
	want := "mailgate: warning: MAILGATE_LOCAL: unknown setting; did you mean MAILGATE_LOCALE?\n" +
		"mailgate: warning: MAILGATE_SERVICE_HOST: unknown setting; mailgate --help lists them all\n"
	if status != exitOK || stderr != want {
		t.Errorf("status %d:\n%s", status, stderr)
	}
	server := startServer(t, environ)
	server.signal(t, syscall.SIGTERM)
	server.end(t) // by then everything is logged
	if lines := mentions(server.log, "did you mean MAILGATE_LOCALE?"); len(lines) != 1 || lines[0]["level"] != "WARN" {
		t.Errorf("%s", server.log)
	}
}

func TestRotatingKeys_AreNoted(t *testing.T) {
	relay := startRelay(t, sandbox.Options{})
	for keys, want := range map[string]bool{"web:new-" + secret + ",shop:" + secret + ",web:old-" + secret: true, "web:" + secret: false} {
		environ := settingsFor(relay.URL(), "MAILGATE_DATA_DIR=:memory:", "MAILGATE_API_KEYS="+keys)
		if stdout := does(t, environ, exitOK, "", "check-config"); strings.Contains(stdout, "\nnote: keys with two secrets: web; remove the old ones") != want {
			t.Error(stdout)
		}
		server := startServer(t, environ)
		server.signal(t, syscall.SIGTERM)
		server.end(t)
		if found := len(mentions(server.log, "keys with two secrets: web; remove")) == 1; found != want {
			t.Errorf("%s", server.log)
		}
	}
}

// What cannot work is one line and the exit status for it.
func TestMistakes_OneLine(t *testing.T) {
	relay := startRelay(t, sandbox.Options{})
	whole := slices.Clip(settingsFor(relay.URL(), "MAILGATE_DATA_DIR=:memory:"))
	file := write(t, t.TempDir()+"/file", "")
	badRules := write(t, t.TempDir()+"/bad.yaml", "rules:\n- name: mailbox\n  off: true")
	indented := write(t, t.TempDir()+"/indented.yaml", "rules:\n- name: mailbox\n    limit: q=1/1s\n")
	limited := write(t, t.TempDir()+"/limited.yaml", "rules: [{name: mailbox, limit: q=1/1s}]")
	texts := t.TempDir()
	write(t, texts+"/code/en/subject.txt", strings.Repeat("x", 190)+"{{.Sender}}")
	for _, tt := range []struct {
		args    string
		environ []string
		want    string
	}{
		{"check-config --templates=" + texts, append(whole, "MAILGATE_FROM=A long name of ours <a@acme.example>"), "--templates: template code/en/subject.txt: is too long"},
		{"serve", nil, "MAILGATE_SMTP_URL: must be set"},
		{"serve", []string{"MAILGATE_SMTP_URL=" + relay.URL()}, "MAILGATE_FROM: must be set"},
		{"serve", []string{"MAILGATE_LISTEN=0.0.0.0:0"}, "MAILGATE_API_KEYS: must be set to listen on 0.0.0.0:0"},
		{"serve", []string{"MAILGATE_LISTEN=:0", "MAILGATE_ADMIN_KEYS=ops:" + adminKey}, "MAILGATE_API_KEYS: must be set"},
		{"serve --tier=x", whole, `unknown flag --tier, did you mean "--tiers"?`},
		{"serve now", whole, "too many arguments; see mailgate serve --help"},
		{"serve --tiers=minute=2/60s,hour=1/1h", whole, "--tiers: "},
		{"serve", append(whole, "MAILGATE_CONFIG="+file, "MAILGATE_SMTP_RATE=-3"), "MAILGATE_SMTP_RATE: must be at least 0"},
		{"serve --listen=" + relay.Addr(), whole[1:], "--listen: cannot listen on " + relay.Addr()},
		{"serve --data-dir=" + file, whole[:5], "--data-dir: " + file + " is a file; give a directory"},
		{"serve --data-dir=" + file + "/data", whole[:5], "--data-dir: " + file + "/data cannot be a directory, as a file is on its path"},
		{"serve --data-dir=/proc/nowhere/data", whole[:5], "--data-dir: /proc/nowhere/data cannot be made"},
		{"serve --templates=/does/not/exist", whole, "--templates: /does/not/exist is not a directory"},
		{"serve --rules=/does/not/exist", whole, "--rules: cannot read the file: open /does/not/exist"},
		{"serve --rules=" + badRules, whole, badRules + ":3: rule mailbox: off: this rule cannot be removed"},
		{"check-config --rules=" + indented, whole, indented + ":2: this is not valid YAML"},
		{"dev --listen=127.0.0.1:0 --rules=" + badRules, nil, badRules + ":3: rule mailbox: off: this rule cannot be removed"},
		{"check-config --rules=" + limited, append(whole, "MAILGATE_TIERS=q=1/1s"), limited + ":1: rule mailbox: limit: it is already set by MAILGATE_TIERS"},
		{"check-config --locale=xx", whole, `--locale: not every template has "xx"; code: en, zh`},
		{"check-config", append(whole[:2:2], "MAILGATE_ADMIN_KEYS=ops:"+apiKey), "MAILGATE_ADMIN_KEYS: has a secret that is in api_keys too"},
		{"sevre", nil, `unexpected argument sevre, did you mean "serve"?`},
		{"help sevre", nil, `unexpected argument sevre, did you mean "serve"?`},
		{"version 2", nil, "too many arguments"},
		{"dev --listen=0.0.0.0:0", nil, "--listen: dev serves this machine only"},
		{"dev --smtp-url=" + relay.URL(), nil, "--smtp-url: dev decides this itself"},
		{"dev --config=" + file, nil, "--config: dev decides this itself"},
		{"dev --listen=" + relay.Addr(), nil, "--listen: cannot listen on"},
	} {
		status, stdout, stderr := run(t, tt.environ, strings.Fields(tt.args)...)
		if status != exitMisusage || stdout != "" || !strings.HasPrefix(stderr, "mailgate: "+tt.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: status %d\n got %s%swant mailgate: %s…", tt.args, status, stdout, stderr, tt.want)
		}
	}
}

func TestHelp(t *testing.T) {
	help := does(t, nil, exitOK, "mailgate dev", "--help")
	for _, command := range []string{"serve", "dev", "check-config", "test-mail", "show", "reset", "healthcheck", "version"} {
		if !strings.Contains(help, "\n  "+command+" ") {
			t.Errorf("the help does not list %s", command)
		}
		for _, args := range [][]string{{"help", command}, {command, "--help"}, {command, "-h"}} {
			if own := does(t, nil, exitOK, "Usage: mailgate "+command, args...); strings.Contains(own, "--smtp-url=") {
				t.Errorf("%q lists the settings too:\n%s", args, own)
			}
		}
	}
	for _, setting := range configOf(t, nil).Settings() {
		if !strings.Contains(help, "(MAILGATE_"+strings.ToUpper(setting.Name)+")") || !strings.Contains(help, "--"+strings.ReplaceAll(setting.Name, "_", "-")) {
			t.Errorf("the help does not list %s", setting.Name)
		}
	}
	if status, stdout, stderr := run(t, nil); status != exitMisusage || stdout != "" || stderr != help {
		t.Error("without a command, the help should be on stderr")
	}
}

func TestVersion(t *testing.T) {
	for _, arg := range []string{"version", "--version", "-v"} {
		status, stdout, _ := run(t, nil, arg)
		if fields := strings.Fields(stdout); status != exitOK || len(fields) != 4 || fields[0] != "mailgate" || !strings.HasPrefix(fields[2], "go1.") {
			t.Errorf("%s: status %d: %q", arg, status, stdout)
		}
	}
}
