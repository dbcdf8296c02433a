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

	"github.com/mailgate/mailgate/cmd/mailgate/settings"
	"github.com/mailgate/mailgate/mailer/sandbox"
	"github.com/mailgate/mailgate/mailer/sandbox/fault"
)

// Whoever answers in a server's place writes to nobody's terminal but that one line.
func TestWhatIsSaidIsOneLine(t *testing.T) {
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"status":422,"title":"a\u001b[2J\r\nreset","detail":"b\u009b31m"}`)
	}))
	defer stranger.Close()
	_, _, stderr := run(t, []string{"MAILGATE_URL=" + stranger.URL, "MAILGATE_ADMIN_KEYS=ops:" + adminKey}, "show", "alice@example.com")
	if line := strings.TrimSuffix(stderr, "\n"); !strings.Contains(line, "answers 422: a") || strings.ContainsFunc(line, unicode.IsControl) {
		t.Errorf("it is said: %q", stderr)
	}
}

// show and reset ask a running server.
func TestOperator(t *testing.T) {
	relay := startRelay(t, sandbox.Options{})
	server := startServer(t, settingsFor(relay.URL(), "MAILGATE_DATA_DIR=:memory:", "MAILGATE_SECRET=sixteen-bytes-of-chance-or-more"))
	sent := newClient(t, server.URL, apiKey).mustSend(t, "alice@example.com", 200)
	environ := []string{"MAILGATE_URL=" + server.URL, "MAILGATE_ADMIN_KEYS=ops:" + adminKey}
	steps := []struct {
		name, args string
		environ    []string
		status     int
		says       string
	}{
		{"show", "show alice@example.com", environ, exitOK, fmt.Sprintf(`"id": %q`, sent.Body.ID)},
		{"show by an alias", "show A.lice+x@example.com --url=" + server.URL, environ[1:], exitOK, `"wait_ms": 0`},
		{"reset", "reset Alice@Example.com", environ, exitOK, `"cleared": 1`},
		{"reset again", "reset alice@example.com", environ, exitOK, `"cleared": 0`},
		{"no address", "reset alice", environ, exitFailure, "answers 422: A field will not do: The address has no @."},
		{"a slash is part of the address", "show a/b@example.com", environ, exitOK, `"wait_ms": 0`},
		{"show tells the mailbox's name in the log", "show alice@example.com", environ, exitOK, `"mailbox": "8555ce41e4"`},
		{"a reason", "reset alice@example.com --reason=ticket-4711", environ, exitOK, `"mailbox": "8555ce41e4"`},
		{"a reason in two words", "reset --reason ticket-4712 alice@example.com", environ, exitOK, `"cleared": 0`},
		{"no reason after all", "reset alice@example.com --reason", environ, exitMisusage, "--reason: it needs a value"},
		{"two reasons", "reset --reason=a --reason=b alice@example.com", environ, exitMisusage, "--reason: it needs a value, once"},
		{"too long a reason", "reset alice@example.com --reason=" + strings.Repeat("x", 501), environ, exitFailure, "reason may have 500 characters."},
		{"after --, it is an argument", "reset -- alice@example.com --reason=x", environ, exitMisusage, "arguments given: 2"},
		{"no key", "reset alice@example.com", environ[:1], exitFailure, "answers 401"},
		{"no key, and where one is looked for", "show alice@example.com", environ[:1], exitFailure, "MAILGATE_ADMIN_KEYS"},
		{"wrong key", "reset alice@example.com", []string{environ[0], "MAILGATE_ADMIN_KEYS=ops:wrong-" + secret}, exitFailure, "answers 401"},
		{"nobody there", "show alice@example.com --url=http://127.0.0.1:1", environ[1:], exitFailure, "no server answers at http://127.0.0.1:1"},
		{"two addresses", "show alice@example.com bob@example.com", environ, exitMisusage, "this command takes <email>; arguments given: 2"},
		{"healthy", "healthcheck", environ, exitOK, ""},
		{"not healthy", "healthcheck --url=http://127.0.0.1:1", nil, exitFailure, "no server answers"},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			status, stdout, stderr := run(t, step.environ, strings.Fields(step.args)...)
			if status != step.status || !strings.Contains(stdout+stderr, step.says) {
				t.Errorf("status %d, want %d and %q:\n%s%s", status, step.status, step.says, stdout, stderr)
			}
			if strings.Contains(stderr, "@example") {
				t.Errorf("an address is in a complaint: %s", stderr)
			}
		})
	}
	for _, reason := range []string{`"reason":"ticket-4711"`, `"reason":"ticket-4712"`, `"mailbox":"8555ce41e4"`} {
		server.log.await(t, reason, func(log string) (string, bool) { return "", strings.Contains(log, reason) })
	}
}

// reset forgets the subject of an action, and nothing of a mailbox.
func TestResetOfAnAction(t *testing.T) {
	s := startSite(t, "actions: [{name: reply, limit: hour=2/1h}]", "MAILGATE_DATA_DIR=:memory:")
	environ := []string{"MAILGATE_URL=" + s.URL, "MAILGATE_ADMIN_KEYS=ops:" + adminKey}
	body := `{"subject":"user 4711/\"a\""}`
	s.app.must(t, "POST", "/actions/reply/take", body, 200)
	for _, step := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--action", "reply", "user 4711"}, exitOK, `"cleared": 0`},
		{[]string{"--action=reply", `user 4711/"a"`, "--reason", "ticket 4711"}, exitOK, `"cleared": 1`},
		{[]string{"--action", "reply", "--", "--subject"}, exitOK, `"action": "reply"`},
		{[]string{"--action", "replies", "user 4711"}, exitFailure, "answers 404"},
		{[]string{"--action", "reply"}, exitMisusage, "this command takes <subject>; arguments given: 0"},
		{[]string{"--action", "reply", ""}, exitFailure, "subject is empty."},
		{[]string{"alice@example.com", "--action"}, exitMisusage, "--action: it needs a value, once"},
	} {
		status, stdout, stderr := run(t, environ, append([]string{"reset"}, step.args...)...)
		if status != step.status || !strings.Contains(stdout+stderr, step.says) {
			t.Errorf("%q: status %d, want %d and %q:\n%s%s", step.args, status, step.status, step.says, stdout, stderr)
		}
	}
	s.log.await(t, "the audit", func(log string) (string, bool) {
		return "", strings.Contains(log, `"action":"reply"`) && strings.Contains(log, `"reason":"ticket 4711"`) && !strings.Contains(log, "user 4711")
	})
}

// show and reset see and forget what a rule counts by something else than mailboxes, and
// nothing of a mailbox.
func TestRuleOfAnOperator(t *testing.T) {
	s := startSite(t, `rules:
- {name: client-ip, limit: hour=2/1h, by: client_ip, algorithm: fixed-window}
- {name: provider, by: all, algorithm: token-bucket, limit: day=3/24h, burst: 3, keep_for_first_sends: 1}
`, "MAILGATE_DATA_DIR=:memory:")
	environ := []string{"MAILGATE_URL=" + s.URL, "MAILGATE_ADMIN_KEYS=ops:" + adminKey}
	send := func(email string, status int) {
		t.Helper()
		s.app.must(t, "POST", "/send-code", fmt.Sprintf(`{"email":%q,"client_ip":"2001:db8::7"}`, email), status)
	}
	do := func(status int, says string, args ...string) {
		t.Helper()
		got, stdout, stderr := run(t, environ, args...)
		if got != status || !strings.Contains(stdout+stderr, says) {
			t.Errorf("%q: status %d, want %d and %q:\n%s%s", args, got, status, says, stdout, stderr)
		}
		if strings.Contains(stderr, "2001:db8") {
			t.Errorf("an address is in a complaint: %s", stderr)
		}
	}
	send("alice@example.com", 200)
	send("bob@example.com", 200)
	send("carol@example.com", 429)
	do(exitOK, `"allowed": false`, "show", "--rule", "client-ip", "2001:db8::8")
	do(exitOK, `"cleared": 0`, "reset", "--rule", "client-ip", "198.51.100.7")
	do(exitOK, `"cleared": 2`, "reset", "--rule=client-ip", "2001:db8::9", "--reason", "ticket 4711")
	do(exitOK, `"allowed": true`, "show", "--rule=client-ip", "2001:db8::9")
	send("carol@example.com", 200)
	send("dave@example.com", 429)
	do(exitOK, `"remaining": 0`, "show", "--rule", "provider")
	do(exitOK, `"cleared": 3`, "reset", "--rule", "provider")
	send("dave@example.com", 200)
	send("alice@example.com", 429) // her own minute is not over

	do(exitFailure, "answers 404: There is no such rule: No rule has this name.", "reset", "--rule", "clientip", "2001:db8::7")
	do(exitFailure, "POST /admin/mailboxes/{email}/reset", "reset", "--rule", "mailbox", "alice@example.com")
	do(exitFailure, "subject must be an IPv4 or IPv6 address.", "reset", "--rule", "client-ip", "2001:db8::/64")
	do(exitFailure, "subject is missing.", "reset", "--rule", "client-ip")
	do(exitFailure, "leave subject out", "reset", "--rule", "provider", "2001:db8::7")
	do(exitMisusage, "this command takes [subject]; arguments given: 2", "reset", "--rule", "client-ip", "2001:db8::7", "2001:db8::8")
	do(exitMisusage, "give one of them", "reset", "--rule", "client-ip", "--action", "reply", "2001:db8::7")
	s.log.await(t, "the audit", func(log string) (string, bool) {
		return "", strings.Contains(log, `"rule":"client-ip"`) && strings.Contains(log, `"reason":"ticket 4711"`) && !strings.Contains(log, "2001:db8")
	})
}

// Of a mailbox that the rule mailbox leaves alone show says so.
func TestShowOfAnExemptMailbox(t *testing.T) {
	s := startSite(t, "rules: [{name: mailbox, exempt: {mailboxes: ['e2e-*@example.com']}}]", "MAILGATE_DATA_DIR=:memory:")
	environ := []string{"MAILGATE_URL=" + s.URL, "MAILGATE_ADMIN_KEYS=ops:" + adminKey}
	for address, want := range map[string]bool{"e2e-7@example.com": true, "alice@example.com": false} {
		status, stdout, stderr := run(t, environ, "show", address)
		said := strings.Contains(stdout, `"note": "the rule mailbox exempts this mailbox, so there are no limits to list"`)
		if status != exitOK || said != want || !json.Valid([]byte(stdout)) {
			t.Errorf("%s: status %d: %s%s", address, status, stdout, stderr)
		}
	}
}

// An IPv4 address is listened to as it is written, and no host is every address.
func TestListen(t *testing.T) {
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

// The address that the operator's commands ask when no URL is set.
func TestServerURL(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080",
		":8080":          "http://127.0.0.1:8080",
		"0.0.0.0:99":     "http://127.0.0.1:99",
		"[::]:99":        "http://127.0.0.1:99",
		"[::1]:99":       "http://[::1]:99",
		"10.0.0.7:80":    "http://10.0.0.7:80",
	} {
		s, _, err := settings.Read([]string{"--listen", listen}, nil) // who asks needs no key of a back end
		if err != nil {
			t.Fatal(err)
		}
		if got := serverURL(s, false); got != want {
			t.Errorf("%s is asked at %s, want %s", listen, got, want)
		}
	}
	s, _, err := settings.Read([]string{"--url=https://mail.example/"}, nil)
	if err != nil || serverURL(s, false) != "https://mail.example" {
		t.Errorf("%v", err)
	}
}

func TestTestMail(t *testing.T) {
	relay := startRelay(t, sandbox.Options{})
	status, stdout, stderr := run(t, settingsFor(relay.URL(), "MAILGATE_LOCALE=zh"), "test-mail", "alice@example.com")
	if status != exitOK || !strings.HasPrefix(stdout, "accepted by "+relay.Addr()+": 250") {
		t.Errorf("status %d: %s%s", status, stdout, stderr)
	}
	if mails := relay.List(); len(mails) != 1 || !strings.Contains(mails[0].Subject, "验证码") {
		t.Errorf("%d mails", len(mails))
	}
	if status, _, stderr := run(t, settingsFor(relay.URL()), "test-mail", "alice"); status != exitMisusage || !strings.Contains(stderr, "the recipient will not do") {
		t.Errorf("status %d: %s", status, stderr)
	}
	broken := startFaulty(t, fault.Script{At: fault.RCPT, Kind: fault.Permanent})
	status, _, stderr = run(t, settingsFor(plain(broken)), "test-mail", "alice@example.com")
	if status != exitFailure || !strings.Contains(stderr, "554") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("refused: status %d: %s", status, stderr)
	}
}

// check-config shows every setting, where it comes from, and no secret.
func TestCheckConfig(t *testing.T) {
	config := write(t, t.TempDir()+"/m.yaml", "locale: zh\n")
	environ := settingsFor("smtps://user:"+secret+"@relay.example", "MAILGATE_CONFIG="+config,
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
		"locale":    "zh file " + config + ":1: locale",
		"smtp_url":  "smtps://relay.example:465 environment MAILGATE_SMTP_URL",
		"redis_url": "redis://***@redis.example environment MAILGATE_REDIS_URL",
		"secret":    "*** environment MAILGATE_SECRET",
		"api_keys":  "app:*** environment MAILGATE_API_KEYS",
		"fold":      "true default",
		"templates": "(not set) default",
		"data_dir":  "(not set) default",
		"mailbox":   "by mailbox sliding-log q=1/1s; exempt mailboxes: 2",
		"client-ip": "by client_ip sliding-window minute=100/60s in 60 parts; exempt networks: 1; exempt api keys: 1",
		"provider":  "by all fixed-window day=50000/24h; the last 5000 for first sends",
		"callers":   "by api_key token-bucket second=20/1s, bursts of 100; in shadow, refuses nothing",
		"reply":     "sliding-log minute=10/60s,hour=100/1h",
	} {
		if lines[name] != want {
			t.Errorf("%s is shown as %q, want %q", name, lines[name], want)
		}
	}
	if want := "MAILGATE_SYNC has no effect, because the history is in Redis\n" +
		"MAILGATE_CACHE_MAILBOXES has no effect, because the history is in Redis\n" +
		"no directory is set as data_dir, so while Redis is away sends are refused (on_store_outage: refuse)\nthe rule client-ip exempts API keys that are not set: batch\n"; notes != want {
		t.Errorf("it notes %q, want %q", notes, want)
	}
	for _, setting := range settings.Catalogue() {
		if lines[setting.Name] == "" {
			t.Errorf("%s is not shown", setting.Name)
		}
	}
}

// Whoever reads check-config is told that nobody is protected.
func TestCheckConfigOfAShadow(t *testing.T) {
	path := write(t, t.TempDir()+"/rules.yaml", "rules: [{name: mailbox, shadow: true}]")
	status, stdout, stderr := run(t, settingsFor("smtps://relay.example"), "check-config", "--rules="+path)
	if status != exitOK || !strings.Contains(stdout, "\nnote: the rule mailbox is in shadow, so any mailbox can be sent any number of mails\n") ||
		!strings.Contains(stdout, "in shadow, refuses nothing\n") || strings.Contains(stdout, "Actions:") {
		t.Errorf("status %d: %s%s", status, stdout, stderr)
	}
}

// A secret that was changed is not to be left in.
func TestKeysWithTwoSecrets(t *testing.T) {
	relay := startRelay(t, sandbox.Options{})
	for keys, want := range map[string]bool{"web:new-" + secret + ",shop:" + secret + ",web:old-" + secret: true, "web:" + secret: false} {
		environ := settingsFor(relay.URL(), "MAILGATE_DATA_DIR=:memory:", "MAILGATE_API_KEYS="+keys)
		status, stdout, stderr := run(t, environ, "check-config")
		if said := strings.Contains(stdout, "\nnote: keys with two secrets: web; take the old ones out"); status != exitOK || said != want {
			t.Errorf("status %d: %s%s", status, stdout, stderr)
		}
		server := startServer(t, environ)
		server.signal(t, syscall.SIGTERM)
		server.end(t) // by then it has said all
		log := server.log.String()
		if said := strings.Contains(log, `"msg":"keys have two secrets: take the old ones out when nobody uses them any more","keys":"web"`); said != want {
			t.Errorf("%s", log)
		}
	}
}

// What cannot work is one line and the exit status for it, from every command that
// meets it.
func TestComplaints(t *testing.T) {
	relay := startRelay(t, sandbox.Options{})
	whole := slices.Clip(settingsFor(relay.URL(), "MAILGATE_DATA_DIR=:memory:"))
	file := write(t, t.TempDir()+"/file", "")
	badRules := write(t, t.TempDir()+"/bad.yaml", "rules:\n- name: mailbox\n  off: true")
	limited := write(t, t.TempDir()+"/limited.yaml", "rules: [{name: mailbox, limit: q=1/1s}]")
	texts := t.TempDir()
	write(t, texts+"/code/en/subject.txt", strings.Repeat("x", 190)+"{{.Sender}}")
	tests := []struct {
		name    string
		args    string
		environ []string
		want    string
	}{
		{"a text that does not suit the sender", "check-config --templates=" + texts, append(whole, "MAILGATE_FROM=A long name of ours <a@acme.example>"), "--templates: template code/en/subject.txt: is too long"},
		{"no relay", "serve", nil, "MAILGATE_SMTP_URL: it must be set"},
		{"no sender", "serve", []string{"MAILGATE_SMTP_URL=" + relay.URL()}, "MAILGATE_FROM: it must be set"},
		{"no keys beyond loopback", "serve", []string{"MAILGATE_LISTEN=0.0.0.0:0"}, "MAILGATE_API_KEYS: without keys it serves on loopback only"},
		{"admin keys alone are not enough", "serve", []string{"MAILGATE_LISTEN=:0", "MAILGATE_ADMIN_KEYS=ops:" + adminKey}, "MAILGATE_API_KEYS: without keys"},
		{"unknown variable", "serve", append(whole, "MAILGATE_SMTPURL=x"), "MAILGATE_SMTPURL: there is no such setting"},
		{"unknown flag", "serve --tier=x", whole, "there is no flag --tier"},
		{"an argument too many", "serve now", whole, "this command takes no argument; arguments given: 1"},
		{"wrong tiers", "serve --tiers=minute=2/60s,hour=1/1h", whole, "--tiers: "},
		{"wrong relay", "serve", append(whole, "MAILGATE_CONFIG="+file, "MAILGATE_SMTP_RATE=-3"), "MAILGATE_SMTP_RATE: it must be at least 0"},
		{"port taken", "serve --listen=" + relay.Addr(), whole[1:], "--listen: cannot listen on " + relay.Addr()},
		{"data in a file", "serve --data-dir=" + file, settingsFor(relay.URL()), "--data-dir: "},
		{"no such templates", "serve --templates=/does/not/exist", whole, "--templates: /does/not/exist is not a directory"},
		{"no such rules", "serve --rules=/does/not/exist", whole, "--rules: cannot read the file: open /does/not/exist"},
		{"rules that cannot be right", "serve --rules=" + badRules, whole, badRules + ":3: rule mailbox: off: this rule cannot be removed"},
		{"rules to check", "check-config --rules=" + badRules, whole, badRules + ":3: rule mailbox: off: this rule cannot be removed"},
		{"dev by them", "dev --listen=127.0.0.1:0 --rules=" + badRules, nil, badRules + ":3: rule mailbox: off: this rule cannot be removed"},
		{"one limit in two places", "check-config --rules=" + limited, append(whole, "MAILGATE_TIERS=q=1/1s"), limited + ":1: rule mailbox: limit: it was already set by MAILGATE_TIERS"},
		{"no such locale", "check-config --locale=xx", whole, `--locale: not every template has "xx"; code: en, zh`},
		{"one secret for all", "check-config", append(whole[:2:2], "MAILGATE_ADMIN_KEYS=ops:"+apiKey), "MAILGATE_ADMIN_KEYS: a secret in it is one of api_keys too"},
		{"no command", "sevre", nil, `there is no command "sevre"`},
		{"help on no command", "help sevre", nil, `there is no command "sevre"`},
		{"version of what", "version 2", nil, "this command takes no argument; arguments given: 1"},
		{"dev elsewhere", "dev --listen=0.0.0.0:0", nil, "--listen: dev serves this machine only"},
		{"dev with a relay", "dev --smtp-url=" + relay.URL(), nil, "--smtp-url: dev decides this by itself"},
		{"dev with a file", "dev --config=" + file, nil, "--config: this command reads no settings file"},
		{"dev on a port taken", "dev --listen=" + relay.Addr(), nil, "--listen: cannot listen on"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, stdout, stderr := run(t, tt.environ, strings.Fields(tt.args)...)
			if status != exitMisusage || stdout != "" {
				t.Errorf("exit status %d: %s", status, stdout)
			}
			if !strings.HasPrefix(stderr, "mailgate: "+tt.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("\n got %s\nwant mailgate: %s…", stderr, tt.want)
			}
		})
	}
}

// The help teaches: every command with its own text, every setting with its name, its
// default and a line.
func TestHelp(t *testing.T) {
	status, help, _ := run(t, nil, "--help")
	if status != exitOK {
		t.Errorf("exit status %d", status)
	}
	for _, command := range commands() {
		if !strings.Contains(help, "\n  "+command.name) || !strings.Contains(help, command.summary) {
			t.Errorf("the help does not tell of %s", command.name)
		}
		for _, args := range [][]string{{"help", command.name}, {command.name, "--help"}, {command.name, "-h"}} {
			status, own, _ := run(t, nil, args...)
			if status != exitOK || !strings.HasPrefix(own, "mailgate "+command.name) || len(own) < 80 {
				t.Errorf("%q: status %d, %q", args, status, own)
			}
		}
	}
	for _, setting := range settings.Catalogue() {
		if !strings.Contains(help, setting.Env()) || !strings.Contains(help, setting.Help) || !strings.Contains(help, setting.Default) {
			t.Errorf("the help does not tell of %s", setting.Name)
		}
	}
	for line := range strings.Lines(help) {
		if len(line) > 140 {
			t.Errorf("too long for a terminal: %s", line)
		}
	}
	if status, stdout, stderr := run(t, nil); status != exitMisusage || stdout != "" || stderr != help {
		t.Error("without a command, the help should be the complaint")
	}
}

func TestVersion(t *testing.T) {
	for _, asked := range []string{"version", "--version", "-v"} {
		status, stdout, _ := run(t, nil, asked)
		if fields := strings.Fields(stdout); status != exitOK || len(fields) != 4 || fields[0] != "mailgate" || !strings.HasPrefix(fields[2], "go1.") {
			t.Errorf("%s: status %d: %q", asked, status, stdout)
		}
	}
}
