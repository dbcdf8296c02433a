package settings_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/cmd/mailgate/settings"
)

// hidden is part of every secret in these tests and must be in no error.
const hidden = "hush-hush-hush-hush"

// Each setting that cannot be right, and the one line that says so.
func TestWrongSettings(t *testing.T) {
	redis := "MAILGATE_REDIS_URL=redis://localhost"
	relay := "MAILGATE_SMTP_URL=smtps://relay.example"
	wrongName := "MAILGATE_REDIS_PREFIX: a name is lower-case letters, digits, - and _, and starts with a letter"
	tests := []struct {
		environ string // variables, joined by &
		want    string // beginning of the error
	}{
		{"MAILGATE_LISTEN=8080", "MAILGATE_LISTEN: it must be host:port"},
		{"MAILGATE_LISTEN=127.0.0.1:99999", "MAILGATE_LISTEN: the port must be a number from 0 to 65535"},
		{"MAILGATE_LISTEN=127.0.0.1:http", "MAILGATE_LISTEN: the port must be a number"},
		{"MAILGATE_LISTEN=127.0.0.1:080", "MAILGATE_LISTEN: the port must be a number"},
		{"MAILGATE_LISTEN=user@host:80", "MAILGATE_LISTEN: it must be host:port"},
		{"MAILGATE_API_KEYS=" + hidden, "MAILGATE_API_KEYS: "},
		{"MAILGATE_API_KEYS=web:" + hidden + ",shop:" + hidden, "MAILGATE_API_KEYS: key 2 has the secret of a key before it"},
		{"MAILGATE_ADMIN_KEYS=:" + hidden, "MAILGATE_ADMIN_KEYS: "},
		{"MAILGATE_API_KEYS=web:" + hidden + " & MAILGATE_ADMIN_KEYS=ops:" + hidden, "MAILGATE_ADMIN_KEYS: a secret in it is one of api_keys too"},
		{"MAILGATE_API_KEYS=  & MAILGATE_LISTEN=:8080", "MAILGATE_API_KEYS: there is no key in it"},
		{"MAILGATE_ADMIN_KEYS= \u00a0", "MAILGATE_ADMIN_KEYS: there is no key in it"},
		{"MAILGATE_API_KEYS=web:fifteen-letters", "MAILGATE_API_KEYS: key 1 has a secret of fewer than 16 characters"},
		{"MAILGATE_ADMIN_KEYS=ops:" + hidden + ",bob:fifteen-letters", "MAILGATE_ADMIN_KEYS: key 2 has a secret of fewer than 16 characters"},
		{"MAILGATE_API_KEYS=web:change-me-" + hidden, "MAILGATE_API_KEYS: key 1 has the secret of an example"},
		{"MAILGATE_ADMIN_KEYS=ops:Change-Me", "MAILGATE_ADMIN_KEYS: key 1 has the secret of an example"},
		{relay + " & MAILGATE_API_KEYS=web:" + hidden + ",demo:trial-key-everybody-knows", "MAILGATE_API_KEYS: a secret in it is that of the trial"},
		{relay + " & MAILGATE_ADMIN_KEYS=operator:trial-admin-key-everybody-knows", "MAILGATE_ADMIN_KEYS: a secret in it is that of the trial"},
		{relay + " & MAILGATE_SECRET=trial-secret-everybody-knows", "MAILGATE_SECRET: it is that of the trial"},
		{"MAILGATE_SMTP_URL=smtp://mailpit:1025?tls=none,smtps://relay.example & MAILGATE_SECRET=trial-secret-everybody-knows", "MAILGATE_SECRET: it is that of the trial"},
		{"MAILGATE_DRAIN_DELAY=soon", "MAILGATE_DRAIN_DELAY: it must be a length of time"},
		{"MAILGATE_DRAIN_DELAY=5s & MAILGATE_SHUTDOWN_GRACE=5s", "MAILGATE_DRAIN_DELAY: it must be shorter than shutdown_grace"},
		{"MAILGATE_DRAIN_DELAY=2h", "MAILGATE_DRAIN_DELAY: it must be at most 5m"},
		{"MAILGATE_API_KEYS_FILE=/does/not/exist", "MAILGATE_API_KEYS_FILE: cannot read the file"},
		{"MAILGATE_API_KEYS_FILE=/", "MAILGATE_API_KEYS_FILE: / is a directory"},
		{"MAILGATE_API_KEYS_FILE=/dev/null", "MAILGATE_API_KEYS_FILE: the file /dev/null is empty"},
		{"MAILGATE_API_KEYS=web:" + hidden + " & MAILGATE_API_KEYS_FILE=/dev/null", "MAILGATE_API_KEYS_FILE: it was already set by MAILGATE_API_KEYS"},
		{"MAILGATE_TRUSTED_PROXIES=10.0.0.0/8,example", "MAILGATE_TRUSTED_PROXIES: it is neither"},
		{"MAILGATE_TRUSTED_PROXIES=10.1.2.3/8", "MAILGATE_TRUSTED_PROXIES: 10.1.2.3/8 has bits set"},
		{"MAILGATE_MAX_CONNECTIONS=0", "MAILGATE_MAX_CONNECTIONS: it must be at least 1"},
		{"MAILGATE_MAX_CONNECTIONS=many", "MAILGATE_MAX_CONNECTIONS: it must be a whole number"},
		{"MAILGATE_LOOKUP_RATE=-1", "MAILGATE_LOOKUP_RATE: it must be at least 0"},
		{"MAILGATE_LOOKUP_RATE=2.5", "MAILGATE_LOOKUP_RATE: it must be a whole number"},
		{"MAILGATE_SHUTDOWN_GRACE=30", "MAILGATE_SHUTDOWN_GRACE: it must be a length of time"},
		{"MAILGATE_SHUTDOWN_GRACE=2h", "MAILGATE_SHUTDOWN_GRACE: it must be at most 1h"},
		{"MAILGATE_SHUTDOWN_GRACE=-1s", "MAILGATE_SHUTDOWN_GRACE: it must be at least 0s"},
		{"MAILGATE_TIERS=minute", "MAILGATE_TIERS: "},
		{"MAILGATE_TIERS=minute=0/60s", "MAILGATE_TIERS: "},
		{"MAILGATE_TIERS=minute=1/60s,minute=2/1h", "MAILGATE_TIERS: "},
		{"MAILGATE_TIERS=minute=1/1.0001ms", "MAILGATE_TIERS: "},
		{"MAILGATE_FOLD=yes", "MAILGATE_FOLD: it must be true or false"},
		{"MAILGATE_SYNC=1", "MAILGATE_SYNC: it must be true or false"},
		{"MAILGATE_CACHE_MAILBOXES=0", "MAILGATE_CACHE_MAILBOXES: it must be at least 1"},
		{"MAILGATE_CACHE_MAILBOXES=1e6", "MAILGATE_CACHE_MAILBOXES: it must be a whole number"},
		{"MAILGATE_CACHE_BYTES=28MB", "MAILGATE_CACHE_BYTES: it must be a number of bytes"},
		{"MAILGATE_CACHE_BYTES=1", "MAILGATE_CACHE_BYTES: it must be at least 65536"},
		{"MAILGATE_CACHE_BYTES=1025GiB", "MAILGATE_CACHE_BYTES: it must be a number of bytes"},
		{"MAILGATE_CACHE_BYTES=9999999999GiB", "MAILGATE_CACHE_BYTES: it must be a number of bytes"},
		{"MAILGATE_REDIS_URL=http://user:" + hidden + "@host", "MAILGATE_REDIS_URL: "},
		{"MAILGATE_REDIS_URL=" + hidden, "MAILGATE_REDIS_URL: "},
		{"MAILGATE_REDIS_PREFIX=staging", "MAILGATE_REDIS_PREFIX: it means nothing without redis_url"},
		{redis + " & MAILGATE_REDIS_PREFIX=acme:staging", wrongName},
		{redis + " & MAILGATE_REDIS_PREFIX=mailgate:{}", wrongName},
		{redis + " & MAILGATE_REDIS_PREFIX={acme}", wrongName},
		{redis + " & MAILGATE_REDIS_PREFIX=Staging", wrongName},
		{redis + " & MAILGATE_REDIS_PREFIX=acme*", wrongName},
		{redis + " & MAILGATE_REDIS_PREFIX=acme.staging", wrongName},
		{redis + " & MAILGATE_REDIS_PREFIX= acme", wrongName},
		{redis + " & MAILGATE_REDIS_PREFIX=2nd", wrongName},
		{redis + " & MAILGATE_REDIS_PREFIX=a" + strings.Repeat("b", 32), "MAILGATE_REDIS_PREFIX: a name has at most 32 characters"},
		{"MAILGATE_REDIS_CONFIRM=1", "MAILGATE_REDIS_CONFIRM: it means nothing without redis_url"},
		{"MAILGATE_REDIS_TIMEOUT=1s", "MAILGATE_REDIS_TIMEOUT: it means nothing without redis_url"},
		{"MAILGATE_ON_STORE_OUTAGE=refuse", "MAILGATE_ON_STORE_OUTAGE: it means nothing without redis_url"},
		{redis + " & MAILGATE_ON_STORE_OUTAGE=perhaps", "MAILGATE_ON_STORE_OUTAGE: it must be one of: continue, refuse"},
		{redis + " & MAILGATE_REDIS_CONFIRM=1 & MAILGATE_ON_STORE_OUTAGE=continue", "MAILGATE_ON_STORE_OUTAGE: it cannot be continue beside redis_confirm, under which no mail is sent that replicas have not confirmed"},
		{redis + " & MAILGATE_ON_STORE_OUTAGE=continue", "MAILGATE_ON_STORE_OUTAGE: continue needs a directory for this process's own history: set MAILGATE_DATA_DIR, or on_store_outage to refuse"},
		{redis + " & MAILGATE_DATA_DIR=:memory: & MAILGATE_ON_STORE_OUTAGE=continue", "MAILGATE_ON_STORE_OUTAGE: continue needs a directory"},
		{redis + " & MAILGATE_REDIS_CONFIRM=-1", "MAILGATE_REDIS_CONFIRM: it must be at least 0"},
		{redis + " & MAILGATE_REDIS_TIMEOUT=0s", "MAILGATE_REDIS_TIMEOUT: it must be at least 1ms"},
		{redis + " & MAILGATE_REDIS_TIMEOUT=11s", "MAILGATE_REDIS_TIMEOUT: it must be at most 10s"},
		{"MAILGATE_SMTP_URL=smtp://user:" + hidden + "@host:25?tls=none", "MAILGATE_SMTP_URL: "},
		{"MAILGATE_SMTP_URL=smtps://user:" + hidden + "%zz@host", "MAILGATE_SMTP_URL: "},
		{"MAILGATE_SMTP_URL=smtps://host,smtp://user:" + hidden + "@", "MAILGATE_SMTP_URL: "},
		{"MAILGATE_FROM=Acme", "MAILGATE_FROM: the sender must read like"},
		{"MAILGATE_FROM=Acme <a@b.example> & MAILGATE_LOCALE=en\r\nBcc: x", "MAILGATE_LOCALE: it must be one line"},
		{"MAILGATE_LOCALE=en\x1f", "MAILGATE_LOCALE: it must be one line"},
		{"MAILGATE_LOCALE=en\x7f", "MAILGATE_LOCALE: it must be one line"},
		{"MAILGATE_SMTP_MAX_CONNS=0", "MAILGATE_SMTP_MAX_CONNS: it must be at least 1"},
		{"MAILGATE_SMTP_RATE=-1", "MAILGATE_SMTP_RATE: it must be at least 0"},
		{"MAILGATE_SMTP_RATE=NaN", "MAILGATE_SMTP_RATE: it must be"},
		{"MAILGATE_SMTP_RATE=Inf", "MAILGATE_SMTP_RATE: it must be at most"},
		{"MAILGATE_SMTP_RATE=1e-7", "MAILGATE_SMTP_RATE: it must be 0, for as they come, or at least 0.000001"},
		{"MAILGATE_SMTP_RATE=fast", "MAILGATE_SMTP_RATE: it must be a number"},
		{"MAILGATE_SMTP_QUEUE=5", "MAILGATE_SMTP_QUEUE: it means nothing without smtp_rate"},
		{"MAILGATE_CODE_LIFE=0s", "MAILGATE_CODE_LIFE: it must be at least 1s"},
		{"MAILGATE_CODE_LIFE=1.0000001s", "MAILGATE_CODE_LIFE: it must be whole milliseconds"},
		{"MAILGATE_LOG_LEVEL=loud", "MAILGATE_LOG_LEVEL: it must be debug, info, warn or error"},
		{"MAILGATE_LOG_FORMAT=xml", "MAILGATE_LOG_FORMAT: it must be one of: json, text"},
		{"MAILGATE_URL=localhost", "MAILGATE_URL: it must be a URL"},
		{"MAILGATE_URL=https://user:" + hidden + "@host", "MAILGATE_URL: it must be without a user and a password"},
		{"MAILGATE_A\rB=1", `"MAILGATE_A\rB": there is no such setting`},
		{"MAILGATE_SECRET=fifteen-letters", "MAILGATE_SECRET: it has fewer than 16 characters"},
		{"MAILGATE_SECRET=Change-me-" + hidden, "MAILGATE_SECRET: it is the secret of an example"},
		{"MAILGATE_SECRET_FILE=/dev/null", "MAILGATE_SECRET_FILE: the file /dev/null is empty"},
		{"MAILGATE_GUESSES=5", "MAILGATE_GUESSES: "},
		{"MAILGATE_COUNTDOWN_RATE=-1", "MAILGATE_COUNTDOWN_RATE: it must be at least 0"},
		{"MAILGATE_SECRETS=" + hidden, "MAILGATE_SECRETS: there is no such setting"},
		{"MAILGATE_TEIRS=minute=1/60s", "MAILGATE_TEIRS: there is no such setting"},
		{"MAILGATE_FOLD_FILE=/x", "MAILGATE_FOLD_FILE: there is no such setting"},
		{"MAILGATE_CONFIG=/does/not/exist", "MAILGATE_CONFIG: cannot read the file"},
	}
	for _, tt := range tests {
		t.Run(tt.environ, func(t *testing.T) {
			_, _, err := settings.Read(nil, strings.Split(tt.environ, " & "))
			complains(t, err, tt.want)
		})
	}
}

// What is just within its bounds is right.
func TestBounds(t *testing.T) {
	for _, environ := range []string{
		"MAILGATE_LISTEN=:0", "MAILGATE_LISTEN=:65535", "MAILGATE_SMTP_RATE=0.000001",
		"MAILGATE_DRAIN_DELAY=0s & MAILGATE_SHUTDOWN_GRACE=0s",
		"MAILGATE_API_KEYS=web:sixteen-letters.", "MAILGATE_SECRET=sixteen-letters.",
		"MAILGATE_CONFIG=/dev/null",
		"MAILGATE_REDIS_URL=redis://localhost & MAILGATE_REDIS_PREFIX=a",
		"MAILGATE_REDIS_URL=redis://localhost & MAILGATE_REDIS_PREFIX=acme-staging_2" + strings.Repeat("b", 18),
	} {
		read(t, nil, strings.Split(environ, " & "))
	}
	for text, want := range map[string]settings.Bytes{"65536": 65536, "64KiB": 65536, "1024GiB": 1 << 40} {
		if got := read(t, nil, []string{"MAILGATE_CACHE_BYTES=" + text}).CacheBytes; got != want {
			t.Errorf("%s are %d bytes, want %d", text, got, want)
		}
	}
}

// What everybody knows will do where no mail can leave: with the trial's mail catcher, and
// for whoever asks a server.
func TestTrialSettings(t *testing.T) {
	trial := []string{"MAILGATE_API_KEYS=demo:trial-key-everybody-knows", "MAILGATE_ADMIN_KEYS=operator:trial-admin-key-everybody-knows", "MAILGATE_SECRET=trial-secret-everybody-knows"}
	for _, relay := range []string{"", "MAILGATE_SMTP_URL=smtp://mailpit:1025?tls=none"} {
		read(t, nil, append(trial[:3:3], relay))
	}
}

// Mistakes in the settings file are named by their line; what stands there is not
// repeated.
func TestWrongFile(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"unknown name", "locale: en\nteirs: x", ":2: teirs: there is no such setting"},
		{"the file's own name", "config: other.yaml", ":1: config: there is no such setting"},
		{"repeated name", "smtp_url: smtps://u:" + hidden + "@h\nsmtp_url: smtps://u:" + hidden + "@h", ":2: smtp_url: it was already set by "},
		{"other case", "Locale: en", ":1: there is no such setting"},
		{"not YAML", "api_keys: [web:" + hidden + "\nlocale: }", "this is not YAML"},
		{"a tab", "api_keys:\n\t- web:" + hidden, "this is not YAML"},
		{"a list", "- web:" + hidden, ": it must be lines of name: value"},
		{"a word", hidden, ": it must be lines of name: value"},
		{"a mapping in a value", "api_keys: {web: " + hidden + "}", ":1: api_keys: it must be a plain value"},
		{"a list in a list", "api_keys: [[web:" + hidden + "]]", ":1: api_keys: a list may only hold plain values"},
		{"an anchor", "api_keys: &a web:" + hidden + "\nadmin_keys: *a", ":1: api_keys: it must be a plain value"},
		{"a tag", "api_keys: !!binary aGk=", ":1: api_keys: it must be a plain value"},
		{"two documents", "locale: en\n---\nlocale: de", ": it must be one document"},
		{"a block of lines", "api_keys: |\n  web:" + hidden, ":1: api_keys: it must be a plain value"},
		{"a secret twice", "api_keys: web:" + hidden + "\napi_keys_file: /dev/null", ":2: api_keys_file: it was already set by"},
		{"a wrong value", "\n\ntiers: often", ":3: tiers: "},
		{"a value out of range", "smtp_max_conns: 0", ":1: smtp_max_conns: it must be at least 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, "m.yaml", tt.text)
			_, _, err := settings.Read([]string{"--config", path}, nil)
			complains(t, err, path)
			if err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%q does not say %q", err, tt.want)
			}
		})
	}
	complainsOfFlags := func(want string, args ...string) {
		t.Helper()
		_, _, err := settings.Read(args, nil)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), hidden) {
			t.Errorf("%q: %v", args, err)
		}
	}
	complainsOfFlags("--tiers: ", "--tiers", "often")
	complainsOfFlags("--tiers: it needs a value", "--tiers")
	complainsOfFlags("--tiers: it needs a value", "--tiers", "")
	complainsOfFlags("--fold: it needs a value", "--fold=")
	complainsOfFlags("--config: it needs a value", "--config=")
	complainsOfFlags("--fold: it must be true or false", "--fold=maybe")
	complainsOfFlags("--locale: it was already set by --locale", "--locale=en", "--locale=de")
	complainsOfFlags("there is no flag --teirs", "--teirs="+hidden)
	complainsOfFlags("--api-keys: ", "--api-keys="+hidden)
}

func complains(t *testing.T, err error, want string) {
	t.Helper()
	var wrong *settings.Error
	switch {
	case err == nil:
		t.Fatal("it was accepted")
	case !errors.As(err, &wrong):
		t.Errorf("%v is not a settings.Error", err)
	case !strings.HasPrefix(err.Error(), want):
		t.Errorf("got  %v\nwant %s…", err, want)
	}
	if strings.Contains(err.Error(), hidden) || strings.Contains(err.Error(), "\n") {
		t.Errorf("a secret, or more than one line: %q", err)
	}
}

// What only sending needs is asked for by those that send.
func TestForSending(t *testing.T) {
	for _, tt := range []struct{ environ, want string }{
		{"", "MAILGATE_SMTP_URL: it must be set"},
		{"MAILGATE_SMTP_URL=smtps://h.example", "MAILGATE_FROM: it must be set"},
	} {
		complains(t, read(t, nil, []string{tt.environ}).ForSending(), tt.want)
	}
	whole := []string{"MAILGATE_SMTP_URL=smtps://h.example", "MAILGATE_FROM=a@b.example"}
	if err := read(t, nil, whole).ForSending(); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct {
		environ, want string
	}{
		{"MAILGATE_REDIS_URL=redis://h.example", "MAILGATE_SECRET: it must be set where the history is in redis"},
		{"MAILGATE_LISTEN=:8080", "MAILGATE_API_KEYS: without keys it serves on loopback only"},
		{"MAILGATE_TRUSTED_PROXIES=127.0.0.1", "MAILGATE_API_KEYS: without keys it serves this machine alone"},
		{"", ""},
	} {
		if err := read(t, nil, append(whole[:2:2], tt.environ)).ForServing(); tt.want == "" && err != nil {
			t.Error(err)
		} else if tt.want != "" {
			complains(t, err, tt.want)
		}
	}
	complains(t, read(t, nil, nil).ForServing(), "MAILGATE_SMTP_URL: it must be set")
	if err := read(t, nil, append(whole, "MAILGATE_REDIS_URL=redis://h.example", "MAILGATE_SECRET="+hidden)).ForServing(); err != nil {
		t.Error(err)
	}
}

// However settings are printed, no secret is in it.
func TestShown(t *testing.T) {
	s := read(t, nil, []string{
		"MAILGATE_API_KEYS=web:1" + hidden + ",shop:2" + hidden,
		"MAILGATE_ADMIN_KEYS=ops:" + hidden,
		"MAILGATE_SMTP_URL=smtps://" + hidden + ":" + hidden + "@one.example,smtp://two.example,smtp://three.example",
		"MAILGATE_REDIS_URL=redis+sentinel://u:" + hidden + "@a:1,b:2/main?sentinel_password=" + hidden,
		"MAILGATE_FROM=a@b.example",
		"MAILGATE_SECRET=" + hidden,
	})
	asJSON, err := json.Marshal(s)
	if err != nil {
		t.Error(err)
	}
	for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%v %+v", s.Secret, *s), string(asJSON)} {
		if strings.Contains(text, hidden) || !strings.Contains(text, "***") {
			t.Errorf("a secret is printed, or nothing is: %s", text)
		}
	}
	for name, want := range map[string]string{
		"api_keys":   "web:***,shop:***",
		"admin_keys": "ops:***",
		"secret":     "***",
		"smtp_url":   "smtps://one.example:465,smtp://two.example:587,smtp://three.example:587",
		"redis_url":  "redis+sentinel://***@a:1,b:2/main",
		"from":       "a@b.example",
		"tiers":      "minute=1/60s,hour=5/1h,day=10/24h",
		"templates":  "",
		"data_dir":   "",
	} {
		if got := s.Shown(name); got != want {
			t.Errorf("%s is shown as %q, want %q", name, got, want)
		}
	}
	for environ, want := range map[string]string{"": "", "MAILGATE_REDIS_URL=redis+sentinel://a:1,b:2/main?sentinel_password=" + hidden: "redis+sentinel://a:1,b:2/main"} {
		if got := read(t, nil, []string{environ}).Shown("redis_url"); got != want {
			t.Errorf("%s is shown as %q, want %q", environ, got, want)
		}
	}
}
