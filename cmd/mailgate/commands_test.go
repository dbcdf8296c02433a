package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/internal/mailtest"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
)

// configOf is the settings of serve with these flags.
func configOf(t testing.TB, environ []string, flags ...string) *config.Config {
	t.Helper()
	var line commandLine
	parser := must.Get(kong.New(&line, config.Options(environ)...))(t)
	must.Get(parser.Parse(append([]string{"serve"}, flags...)))(t)
	return &line.Config
}

// Scripts of operators rely on the exit statuses.
func TestCommands_ExitStatuses_AreAsDocumented(t *testing.T) {
	t.Parallel()
	does(t, nil, 0, "", "--version")
	does(t, settingsFor("smtp://127.0.0.1:1?tls=none", inMemory), 0, "", "check-config")
	does(t, settingsFor("smtp://127.0.0.1:1?tls=none", inMemory), 1, "", "test-email", "alice@example.com")
	does(t, nil, 2, "", "check-config")
	does(t, nil, 2, "", "no-such-command")
}

func TestTestMail_Relay_SaysTheOutcome(t *testing.T) {
	t.Parallel()
	relay := startRelay(t)
	does(t, settingsFor(relay.URL(), "MAILGATE_LOCALE=zh"), exitOK, "accepted by "+relay.Addr()+": 250", "test-email", "alice@example.com")
	if mails := relay.List(); len(mails) != 1 || !strings.Contains(mails[0].Subject, "验证码") {
		t.Errorf("%d emails", len(mails))
	}
	does(t, settingsFor(relay.URL()), exitMisusage, "invalid recipient", "test-email", "alice")
	broken := fault.Run(t, fault.Script{At: fault.RCPT, Kind: fault.Permanent}).URL()
	does(t, settingsFor(broken), exitFailure, "554", "test-email", "alice@example.com")
}

// What an operator sees of a relay with OAuth: what is wrong, and no secret.
func TestTestMail_OAuth_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	relay := mailtest.Start(t, mailtest.Options{})
	relay.TakeToken(t, "token-"+secret)
	urlWith := func(file string) string {
		u := url.URL{Scheme: "smtp", User: url.User(relay.User), Host: relay.Addr, RawQuery: url.Values{"ca": {relay.CA}, "oauth": {file}}.Encode()}
		return u.String()
	}
	good := mailtest.StartTokens(t, func(w http.ResponseWriter, _ int) { mailtest.GiveToken(w, "token-"+secret, 3600) }).File(t)
	bad := servertest.Write(t, t.TempDir()+"/bad.yaml", "token_url: https://login.example\nclient_secret: "+secret)
	does(t, settingsFor(urlWith(good)), exitOK, "smtp://"+relay.Addr+"?oauth=***", "check-config")
	does(t, settingsFor(urlWith(good)), exitOK, "accepted by "+relay.Addr+": 250", "test-email", "alice@example.com")
	does(t, settingsFor(urlWith(bad)), exitMisusage, "mailgate: MAILGATE_SMTP_URL: oauth: client_id is missing\n", "check-config")

	asked := make(chan string, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.Host
		w.WriteHeader(http.StatusProxyAuthRequired)
	}))
	defer proxy.Close()
	remote := servertest.Write(t, t.TempDir()+"/remote.yaml", "token_url: https://login.example/token\nclient_id: a\nclient_secret: b")
	environ := settingsFor(urlWith(remote), "HTTPS_PROXY=http://user:"+secret+"@"+proxy.Listener.Addr().String())
	if status := launch(t, nil, environ, "test-email", "alice@example.com").End(t); status != exitFailure || len(asked) != 1 || <-asked != "CONNECT login.example:443" {
		t.Errorf("by way of a proxy: status %d", status)
	}
}

func TestCheckConfig_EachSource_ShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	file := servertest.Write(t, t.TempDir()+"/m.yaml", "locale: zh\n")
	environ := settingsFor("smtps://user:"+secret+"@relay.example", "MAILGATE_CONFIG="+file,
		"MAILGATE_REDIS_URL=redis://:"+secret+"@redis.example", "MAILGATE_SECRET="+secret)
	status, stdout, stderr := run(t, environ, "check-config", "--tiers=q=1/1s", "--rules="+deployed+"rules.yaml")
	if status != exitOK || stderr != "" {
		t.Fatalf("status %d: %s", status, stderr)
	}
	shown := "\n" + regexp.MustCompile(`  +`).ReplaceAllString(stdout, " ")
	wants := []string{
		"tiers q=1/1s flag --tiers\n",
		"locale zh file " + file + ":1: locale\n",
		"smtp_url smtps://relay.example:465 environment MAILGATE_SMTP_URL\n",
		"redis_url redis://***@redis.example environment MAILGATE_REDIS_URL\n",
		"secret *** environment MAILGATE_SECRET\n",
		"api_keys app:*** environment MAILGATE_API_KEYS\n",
		"fold true default\n",
		"data_dir (not set) default\n",
		"mailbox by mailbox sliding-log q=1/1s; exempt mailboxes: 2\n",
		"client-ip by client_ip sliding-window minute=100/60s in parts of 1000 ms; exempt networks: 1; exempt api_keys: 1\n",
		"provider by all fixed-window day=50000/24h; the last 5000 for first sends\n",
		"callers by api_key token-bucket second=20/1s, bursts of 100; shadow, refuses nothing\n",
		"client-ip override sliding-window minute=1000/60s in parts of 1000 ms; for networks: 1 an office behind one address\n",
		"abuse denies networks: 1; denies domains: 1\n",
		"reply sliding-log minute=10/60s,hour=100/1h\n",
		"note: MAILGATE_DATA_DIR is not set",
		"note: the rule client-ip names API keys that are not set: batch\n",
	}
	for _, setting := range configOf(t, nil).Settings() {
		wants = append(wants, setting.Name+" ")
	}
	for _, want := range wants {
		if !strings.Contains(shown, "\n"+want) || strings.Count(shown, "\nnote: ") != 2+strings.Count(shown, "\nnote: not every user") {
			t.Errorf("%q is not shown:\n%s", want, shown)
		}
	}
	does(t, settingsFor("smtps://relay.example"), exitOK, "\nclient-ip  by client_ip  sliding-window minute=100/60s", "check-config")
	shadow := servertest.Write(t, t.TempDir()+"/rules.yaml", "rules: [{name: mailbox, shadow: true}]")
	does(t, settingsFor("smtps://relay.example"), exitOK, "\nnote: THE RULE MAILBOX IS IN SHADOW", "check-config", "--rules="+shadow)
	servertest.Write(t, filepath.Join(filepath.Dir(shadow), "list.conf"), "co.uk\n"+strings.Repeat("a.example\n", 99))
	keys := servertest.Write(t, shadow, `
rules: [{name: callers, by: api_key, limit: hour=9/1h}]
deny: [{name: old, api_keys: [app, old-shop]}, {name: list, file: list.conf}]
overrides: [{rule: callers, api_keys: [app, batch], limit: hour=5/1h}]`)
	local := servertest.Write(t, t.TempDir()+"/rules.yaml", "deny: [{name: old, api_keys: [local]}]")
	keyless := slices.DeleteFunc(settingsFor("smtps://relay.example"), func(s string) bool { return strings.HasPrefix(s, "MAILGATE_API_KEYS=") })
	if strings.Contains(does(t, keyless, exitOK, "old", "check-config", "--rules="+local), "names API keys") {
		t.Error("without keys the caller local is unknown")
	}
	for _, note := range []string{"the rule callers names API keys that are not set: batch\n", "the denial old names API keys that are not set: old-shop\n", "list.conf: 1 of 100 entries are left out"} {
		does(t, settingsFor("smtps://relay.example"), exitOK, note, "check-config", "--rules="+keys)
	}
}

func TestUnknownVariable_Similar_IsSuggested(t *testing.T) {
	t.Parallel()
	environ := settingsFor(startRelay(t).URL(), inMemory, "MAILGATE_LOCAL=zh", "MAILGATE_SERVICE_HOST=10.0.0.1")
	status, _, stderr := run(t, environ, "check-config")
	want := "mailgate: warning: MAILGATE_LOCAL: unknown setting; did you mean MAILGATE_LOCALE?\n" +
		"mailgate: warning: MAILGATE_SERVICE_HOST: unknown setting; mailgate --help lists them all\n"
	if status != exitOK || stderr != want {
		t.Errorf("status %d:\n%s", status, stderr)
	}
	startServer(t, environ).awaitLine(t, "MAILGATE_LOCAL: unknown setting; did you mean MAILGATE_LOCALE?", "level")
}

// credential is a file that systemd passes to the running service alone.
const credential = "/run/credentials/mailgate-test.service/none"

// What an operator sees of a file that check-config can read and the service cannot, or the other way around.
func TestCheckConfig_FilesOfTheService_AreNotes(t *testing.T) {
	t.Parallel()
	door := settingsFor("smtp://a@relay.example?oauth="+credential, "MAILGATE_SUBMISSION_LISTEN=127.0.0.1:0",
		"MAILGATE_SUBMISSION_TLS_CERT="+credential, "MAILGATE_SUBMISSION_TLS_KEY="+credential)
	shown := does(t, door, exitOK, "\nnote: MAILGATE_SUBMISSION_TLS_CERT is not checked, as systemd passes its file to the running service alone\n", "check-config")
	if !strings.Contains(shown, "\nnote: MAILGATE_SMTP_URL is not checked, as systemd") || !strings.Contains(shown, "smtp://relay.example:587?oauth=***") {
		t.Errorf("shown is\n%s", shown)
	}
	dir := t.TempDir()
	paths := []string{dir + "/mailgate.yaml", dir + "/rules.yaml", dir + "/list.conf", dir + "/texts/code/en/subject.txt"}
	for i, text := range []string{"locale: en\n", "deny: [{name: list, file: list.conf}]", "bad.example\n", "Hello"} {
		servertest.Write(t, paths[i], text)
	}
	check := func() string {
		t.Helper()
		return does(t, settingsFor("smtps://relay.example"), exitOK, "", "check-config", "--config="+paths[0], "--rules="+paths[1], "--templates="+dir+"/texts")
	}
	for _, path := range append(paths, filepath.Dir(paths[3])) {
		must.OK(t, os.Chmod(path, 0o755))
	}
	for _, path := range []string{dir + "/texts", dir + "/texts/code"} {
		must.OK(t, os.Chmod(path, 0o755))
	}
	if shown := check(); strings.Contains(shown, "\nnote: ") {
		t.Errorf("shown is\n%s", shown)
	}
	for _, path := range append(paths, dir+"/texts/code") {
		must.OK(t, os.Chmod(path, 0o700))
		note := "\nnote: not every user can read " + path + ": under systemd mailgate has a user of its own\n"
		if shown := check(); strings.Contains(shown, note) != (os.Geteuid() == 0) || strings.Count(shown, "\nnote: ") > 1 {
			t.Errorf("%s: shown is\n%s", path, shown)
		}
		must.OK(t, os.Chmod(path, 0o755))
	}
}

// An invalid command line or setting is one line, with the exit status 2.
func TestCommands_Mistake_OneLine(t *testing.T) {
	t.Parallel()
	relay := startRelay(t)
	whole := slices.Clip(settingsFor(relay.URL(), inMemory))
	file := servertest.Write(t, t.TempDir()+"/file", "")
	badRules := servertest.Write(t, t.TempDir()+"/bad.yaml", "rules:\n- name: mailbox\n  off: true")
	indented := servertest.Write(t, t.TempDir()+"/indented.yaml", "rules:\n- name: mailbox\n    limit: q=1/1s\n")
	limited := servertest.Write(t, t.TempDir()+"/limited.yaml", "rules: [{name: mailbox, limit: q=1/1s}]")
	cert, key, otherKey, now := t.TempDir()+"/cert.pem", t.TempDir()+"/key.pem", t.TempDir()+"/other.pem", time.Now().UnixMilli()
	for _, to := range []string{otherKey, key} {
		writeCertificate(t, servertest.NewAuthority(t).Certificate(now, now+3600_000, "127.0.0.1"), cert, to)
	}
	door := slices.Clip(append(whole, "MAILGATE_SUBMISSION_LISTEN=127.0.0.1:0"))
	texts := t.TempDir()
	servertest.Write(t, texts+"/code/en/subject.txt", strings.Repeat("x", 190)+"{{.Sender}}")
	for _, tt := range []struct {
		args    string
		environ []string
		want    string
	}{
		{"check-config --templates=" + texts, append(whole, "MAILGATE_FROM=A long name of ours <a@acme.example>"), "--templates: template code/en/subject.txt: is too long"},
		{"serve", []string{"MAILGATE_LISTEN=0.0.0.0:0"}, "MAILGATE_API_KEYS: must be set to listen on 0.0.0.0:0"},
		{"serve --tier=x", whole, `unknown flag --tier, did you mean "--tiers"?`},
		{"serve now", whole, "too many arguments; see mailgate serve --help"},
		{"serve --listen=" + relay.Addr(), whole[1:], "--listen: cannot listen on " + relay.Addr()},
		{"serve --ops-listen=" + relay.Addr(), whole, "--ops-listen: cannot listen on " + relay.Addr()},
		{"serve --data-dir=" + file, whole[:5], "--data-dir: " + file + " cannot be created: mkdir " + file + ": not a directory; give a directory"},
		{"serve --data-dir=/sys/data", whole[:5], "--data-dir: /sys/data cannot be created"},
		{"serve --templates=/does/not/exist", whole, "--templates: /does/not/exist is not a directory"},
		{"serve --rules=/does/not/exist", whole, "--rules: cannot read the file: open /does/not/exist"},
		{"serve --rules=" + badRules, whole, badRules + ":3: rule mailbox: off: this rule cannot be removed"},
		{"check-config --rules=" + indented, whole, indented + ":2: this is not valid YAML"},
		{"dev --listen=127.0.0.1:0 --rules=" + badRules, nil, badRules + ":3: rule mailbox: off: this rule cannot be removed"},
		{"check-config --rules=" + limited, append(whole, "MAILGATE_TIERS=q=1/1s"), limited + ":1: rule mailbox: limit: it is already set by MAILGATE_TIERS"},
		{"check-config --locale=xx", whole, `--locale: template code: no "xx", the default locale`},
		{"sevre", nil, `unexpected argument sevre, did you mean "serve"?`},
		{"help sevre", nil, `unexpected argument sevre, did you mean "serve"?`},
		{"sendmail", nil, "unexpected argument sendmail; commands: serve, dev, check-config, test-email, show, reset, requests, suppress, unsuppress, suppressions, backup, restore, healthcheck, version"},
		{"dev --listen=0.0.0.0:0", nil, "--listen: dev serves this machine only"},
		{"dev --smtp-url=" + relay.URL(), nil, "--smtp-url: cannot be set for dev"},
		{"dev --config=" + file, nil, "--config: cannot be set for dev"},
		{"dev --listen=" + relay.Addr(), nil, "--listen: cannot listen on"},
		{"check-config --smtp-url=smtp://a@b.example?oauth=/run/none", whole, "--smtp-url: oauth: the file does not exist"},
		{"serve --smtp-url=smtp://a@b.example?oauth=" + credential, whole, "--smtp-url: oauth: the file does not exist"},
		{"test-email a@b.example --smtp-url=smtp://a@b.example?oauth=" + credential, whole, "--smtp-url: oauth: the file does not exist"},
		{"check-config", append(whole, "MAILGATE_API_KEYS=a:"+secret+"\nb:2"+secret), "MAILGATE_API_KEYS: must be one line without control characters, with a comma between two keys\n"},
		{"check-config", append(door, "MAILGATE_SUBMISSION_TLS_CERT="+cert, "MAILGATE_SUBMISSION_TLS_KEY=/run/none"), "MAILGATE_SUBMISSION_TLS_CERT: open /run/none: no such file"},
		{"check-config", append(door, "MAILGATE_SUBMISSION_TLS_CERT="+file, "MAILGATE_SUBMISSION_TLS_KEY="+key), "MAILGATE_SUBMISSION_TLS_CERT: tls: failed to find any PEM data in certificate"},
		{"check-config", append(door, "MAILGATE_SUBMISSION_TLS_CERT="+cert, "MAILGATE_SUBMISSION_TLS_KEY="+otherKey), "MAILGATE_SUBMISSION_TLS_CERT: tls: private key does not match"},
		{"serve", append(door, "MAILGATE_SUBMISSION_TLS_CERT="+credential, "MAILGATE_SUBMISSION_TLS_KEY="+key), "MAILGATE_SUBMISSION_TLS_CERT: open " + credential},
	} {
		status, stdout, stderr := run(t, tt.environ, strings.Fields(tt.args)...)
		if status != exitMisusage || stdout != "" || !strings.HasPrefix(stderr, "mailgate: "+tt.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: status %d\n got %s%swant mailgate: %s…", tt.args, status, stdout, stderr, tt.want)
		}
	}
}

func TestHelp_EachCommand_IsPrinted(t *testing.T) {
	t.Parallel()
	help := does(t, nil, exitOK, "mailgate dev", "--help")
	for _, command := range []string{"serve", "dev", "check-config", "test-email", "show", "reset", "backup", "restore", "healthcheck", "version"} {
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
	for _, args := range []string{"-v", "--version", "version"} {
		does(t, nil, exitOK, " go1.", args)
	}
}
