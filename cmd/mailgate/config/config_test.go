package config_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/internal/servertest"
)

// hidden is part of every secret in these tests, and must be in no error.
const hidden = "Hush-7f3b-9d21-c460"

func parse(args, environ []string) (*config.Config, error) {
	var line struct {
		config.Config
		Serve struct{} `cmd:""`
		Dev   struct{} `cmd:""`
	}
	parser, err := kong.New(&line, config.Options(environ)...)
	if err != nil {
		return nil, err
	}
	if len(args) == 0 || args[0] != "dev" {
		args = append([]string{"serve"}, args...)
	}
	if _, err := parser.Parse(args); err != nil {
		return nil, line.Explain(err)
	}
	return &line.Config, nil
}

func read(t *testing.T, args []string, environ ...string) *config.Config {
	t.Helper()
	c, err := parse(args, environ)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// setting is how a setting is shown.
func setting(c *config.Config, name string) (s config.Setting) {
	for _, one := range c.Settings() {
		if one.Name == name {
			return one
		}
	}
	return s
}

func fails(t *testing.T, err error, want string) {
	t.Helper()
	if _, ok := errors.AsType[*config.Error](err); !ok || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got  %v\nwant %s…", err, want)
		return
	}
	if strings.Contains(err.Error(), hidden) || strings.Contains(err.Error(), "\n") {
		t.Errorf("a secret, or more than one line: %q", err)
	}
}

func TestConfig_SeveralSources_FlagFirst(t *testing.T) {
	path := servertest.Write(t, t.TempDir()+"/mailgate.yaml", "locale: fr\n")
	inFile := "MAILGATE_CONFIG=" + path
	for _, tt := range []struct {
		args, environ []string
		value, from   string
	}{
		{nil, nil, "en", "default"},
		{nil, []string{inFile}, "fr", "file " + path + ":1: locale"},
		{[]string{"--config", path}, nil, "fr", "file " + path + ":1: locale"},
		{nil, []string{inFile, "MAILGATE_LOCALE=de"}, "de", "environment MAILGATE_LOCALE"},
		{nil, []string{inFile, "MAILGATE_LOCALE="}, "fr", "file " + path + ":1: locale"},
		{[]string{"--locale=zh"}, []string{inFile, "MAILGATE_LOCALE=de"}, "zh", "flag --locale"},
		{[]string{"--locale", "zh"}, nil, "zh", "flag --locale"},
		{[]string{"dev"}, []string{inFile, "MAILGATE_LOCALE=de"}, "en", "default"},
	} {
		if got := setting(read(t, tt.args, tt.environ...), "locale"); got.Value != tt.value || got.From != tt.from {
			t.Errorf("%q %q: %+v, want %q from %s", tt.args, tt.environ, got, tt.value, tt.from)
		}
	}
	if c := read(t, []string{"dev", "--locale=zh"}, "MAILGATE_RULES=r.yaml", "MAILGATE_NONE=1"); c.OtherFlag([]string{"locale"}) != "" || c.OtherFlag(nil) != "locale" {
		t.Error("the flags of dev")
	} else if c.Rules != "r.yaml" || c.Unknown() != nil {
		t.Errorf("dev: %q, %q", c.Rules, c.Unknown())
	}
}

func TestFile_EachKindOfValue_IsRead(t *testing.T) {
	c := read(t, []string{"--config", servertest.Write(t, t.TempDir()+"/m.yaml", `# a comment
api_keys:
  - web:first-long-secret
  - "shop:second#long-secret"
trusted_proxies: [10.0.0.0/8, 192.0.2.7]
fold: false
cache_bytes: 64MiB
smtp_url: ["smtps://u:p,w@one.example", "smtp://two.example"]
from: '"Acme, Ltd" <no-reply@acme.example>'
smtp_rate: 2.5
redis_url:
code_life: 5m
`)})
	want := []any{"web:***,shop:***", "first-long-secret", config.Bytes(64 << 20), 2.5, 5 * time.Minute, false}
	got := []any{c.APIKeys.String(), c.APIKeys.First(), c.CacheBytes, c.SMTPRate, c.CodeLife, c.Fold}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %#v\nwant %#v", got, want)
	}
	for name, want := range map[string]string{
		"trusted_proxies": "10.0.0.0/8,192.0.2.7/32", "smtp_url": "smtps://one.example:465,smtp://two.example:587",
		"from": `"Acme, Ltd" <no-reply@acme.example>`, "cache_bytes": "64MiB", "code_life": "5m",
	} {
		if got := setting(c, name); got.Value != want {
			t.Errorf("%s is shown as %q, want %q", name, got.Value, want)
		}
	}
	if c.Given("redis-url") {
		t.Error("a null counts as given")
	}
}

func TestSecretFile_EachSource_IsRead(t *testing.T) {
	key := servertest.Write(t, t.TempDir()+"/key", "web:from-a-file-of-its-own\n")
	for name, c := range map[string]*config.Config{
		"flag":        read(t, []string{"--api-keys-file", key}, "MAILGATE_API_KEYS=web:in-the-environment"),
		"environment": read(t, nil, "MAILGATE_API_KEYS_FILE="+key),
		"file":        read(t, []string{"--config", servertest.Write(t, t.TempDir()+"/m.yaml", "api_keys_file: "+key)}),
	} {
		if got := c.APIKeys.First(); got != "from-a-file-of-its-own" {
			t.Errorf("%s: the key is %q", name, got)
		}
	}
}

func TestConfig_Mistake_NamesTheSetting(t *testing.T) {
	const redis, relay = "MAILGATE_REDIS_URL=redis://localhost", "MAILGATE_SMTP_URL=smtps://relay.example"
	const supabase = "MAILGATE_HOOK_SUPABASE=v1,whsec_aWxpa2VzdXBhYmFzZXZlcnltdWNoYW5kaWhvcGV5b3Vkb3Rvbw=="
	for _, tt := range []struct{ environ, want string }{
		{"LISTEN=8080", "must be host:port"}, {"LISTEN=localhost:http", "must be host:port"}, {"LISTEN=:65536", "must be host:port"},
		{"API_KEYS=" + hidden, "key 1 must be written name:secret"}, {"API_KEYS=,", "key 1 must"}, {"API_KEYS=web:short", "key 1 has a secret that has fewer than 16 characters"},
		{"API_KEYS=a:" + hidden + ",b:" + hidden, "key 2 has the secret of a key before it"}, {"API_KEYS=web:Change-Me-" + hidden + " & " + relay, "has a secret of an example"},
		{"ADMIN_KEYS=a:" + hidden + " & MAILGATE_API_KEYS=b:" + hidden, "has a secret that is in MAILGATE_API_KEYS too"},
		{"API_KEYS=web:" + hidden + ",demo:trial-key-not-secret & " + relay, "has a secret of an example or of docker-compose.yml"},
		{"ADMIN_KEYS=operator:trial-admin-key-not-secret & " + relay, "has a secret of an example or of docker-compose.yml"},
		{"SECRET=" + hidden + "|trial-secret-not-secret & " + relay, "has a secret of an example"},
		{"SECRET=fifteen-letters", "has fewer than 16 characters; make one: openssl rand -hex 16"}, {"SECRET=Change-me-" + hidden + " & " + relay, "has a secret of an example"}, {"SECRET=" + hidden + "|short", "has fewer than 16 characters"},
		{"SECRET_FILE=/dev/null", "the file /dev/null is empty"}, {"SECRET_FILE=/does/not/exist", "cannot read the file"}, {"SECRET_FILE=/", "/ is a directory"},
		{"API_KEYS_FILE=/dev/null & MAILGATE_API_KEYS=web:" + hidden, "already set by MAILGATE_API_KEYS; give one of them"},
		{"DRAIN_DELAY=soon", "must be a duration such as"}, {"DRAIN_DELAY=2h", "must be at most 5m"}, {"DRAIN_DELAY=5s & MAILGATE_SHUTDOWN_GRACE=5s", "must be shorter than MAILGATE_SHUTDOWN_GRACE"},
		{"SHUTDOWN_GRACE=-1s", "must be at least 0s"},
		{"TRUSTED_PROXIES=10.0.0.0/8,example", "write an IP address"}, {"TRUSTED_PROXIES=10.1.2.3/8", "10.1.2.3/8 has bits set"},
		{"MAX_CONNECTIONS=0", "must be at least 1"}, {"MAX_CONNECTIONS=many", "must be a whole number"}, {"LOOKUP_RATE=2.5", "must be a whole number"}, {"LOOKUP_RATE=-1", "must be at least 0"},
		{"TIERS=minute", ""}, {"GUESSES=5", ""}, {"FOLD=maybe", "bool value must be true"},
		{"CACHE_BYTES=1", "must be at least 65536"}, {"CACHE_BYTES=-1", "must be a number of bytes"}, {"CACHE_BYTES=1025GiB", "must be at most"},
		{"REDIS_URL=http://user:" + hidden + "@host", ""}, {"REDIS_URL=" + hidden, ""},
		{"REDIS_PREFIX=staging", "has no effect without MAILGATE_REDIS_URL"}, {"REDIS_CONFIRM=1", "has no effect without MAILGATE_REDIS_URL"}, {"REDIS_TIMEOUT=1s", "has no effect without MAILGATE_REDIS_URL"}, {"ON_STORE_OUTAGE=refuse", "has no effect without MAILGATE_REDIS_URL"},
		{"REDIS_PREFIX=acme:staging & " + redis, "must be 1 to 32 lower-case letters"}, {"REDIS_PREFIX=a" + strings.Repeat("b", 32) + " & " + redis, "must be 1 to 32"}, {"REDIS_PREFIX=2nd & " + redis, "must be 1 to 32"},
		{"ON_STORE_OUTAGE=perhaps & " + redis, "must be one of: continue, refuse"}, {"ON_STORE_OUTAGE=continue & MAILGATE_REDIS_CONFIRM=1 & " + redis, "cannot be continue beside MAILGATE_REDIS_CONFIRM"},
		{"ON_STORE_OUTAGE=continue & " + redis, "continue needs a directory"}, {"ON_STORE_OUTAGE=continue & MAILGATE_DATA_DIR=:memory: & " + redis, "continue needs a directory"},
		{"OPS_LISTEN=:80 & MAILGATE_LISTEN=:80", "must be another address than MAILGATE_LISTEN"}, {"REDIS_TIMEOUT=11s & " + redis, "must be at most 10s"},
		{"SMTP_URL=smtp://user:" + hidden + "@host:25?tls=none", ""}, {"SMTP_URL=smtps://user:" + hidden + "%zz@host", ""}, {"SMTP_URL=smtps://host,smtp://user:" + hidden + "@", ""},
		{"FROM=Acme", "the sender must read like"}, {"LOCALE=en\r\nBcc: x", "must be one line"}, {"LOCALE=en\x7f", "must be one line"},
		{"SMTP_RATE=NaN", "must be"}, {"SMTP_RATE=Inf", "must be at most"}, {"SMTP_RATE=1e-7", "must be 0 for unlimited, or at least 0.000001"}, {"SMTP_RATE=fast", "must be a number"},
		{"CODE_LIFE=0s", "must be at least 1s"}, {"CODE_LIFE=1.0000001s", "must be whole milliseconds"},
		{"LOG_LEVEL=loud", "must be one of: debug, info, warn, error"}, {"LOG_FORMAT=xml", "must be one of: json, text"},
		{"URL=localhost", "must be a URL"}, {"URL=https://user:" + hidden + "@host", "must have no user and password"},
		{"HOOK_SUPABASE=" + hidden, "must be v1,whsec_ and base64"}, {"HOOK_SUPABASE=v1,whsec_" + hidden, "must be v1,whsec_"}, {"HOOK_SUPABASE_FILE=/dev/null", "the file /dev/null is empty"},
		{"TURNSTILE_SITEKEY=0x4", "has no effect without MAILGATE_TURNSTILE_SECRET"}, {"TURNSTILE_HOSTS=acme.example", "has no effect without MAILGATE_TURNSTILE_SECRET"},
		{"HOOK_SUPABASE_URL=https://auth.example", "has no effect without MAILGATE_HOOK_SUPABASE"}, {"HOOK_LOGTO_URL=https://app.example", "has no effect without MAILGATE_HOOK_LOGTO"},
		{"SUBMISSION_DEFER=web", "has no effect without MAILGATE_SUBMISSION_LISTEN"}, {"EVENTS_SECRET=whsec_Y2hhbmdlLW1lIHRvIG9uZSBvZiB5b3VycyE=", "has no effect without MAILGATE_EVENTS_URL"},
		{"HOOK_SUPABASE_URL= & " + supabase, "must be set with MAILGATE_HOOK_SUPABASE"},
		{"HOOK_SUPABASE_URL=auth.example & " + supabase, "must be a URL"},
		{"HOOK_SUPABASE_URL=https://auth.example/a b & " + supabase, "must be the address of Supabase Auth"},
		{"HOOK_SUPABASE_URL=https://auth.example/auth/v1/verify/ & " + supabase, "must be the address of Supabase Auth"},
		{"HOOK_LOGTO=Bearer short", "has fewer than 16 characters"}, {"HOOK_LOGTO=Bearer change-me-" + hidden + " & " + relay, "has a secret of an example"}, {"REDIS_URL=redis://:change-me-" + hidden + "@h & " + relay, "has a secret of an example"},
		{"HOOK_LOGTO_URL=https://app.example/?a & MAILGATE_HOOK_LOGTO=" + hidden, "must be a URL without a user"}, {"PUBLIC_URL=https://u:" + hidden + "@host", "must be a URL without a user"},
		{"API_KEYS=supabase:" + hidden + " & MAILGATE_HOOK_SUPABASE_URL=https://auth.example & " + supabase, "has a key named supabase, which is the name of a hook"},
		{"CONFIG=/does/not/exist", "cannot read the file"},
	} {
		name, _, _ := strings.Cut(tt.environ, "=")
		c, err := parse(nil, strings.Split("MAILGATE_"+tt.environ, " & "))
		if err == nil {
			err = c.Together()
		}
		fails(t, err, "MAILGATE_"+name+": "+tt.want)
	}
	c, err := parse([]string{"dev", "--hook-supabase", strings.TrimPrefix(supabase, "MAILGATE_HOOK_SUPABASE=")}, []string{"MAILGATE_HOOK_SUPABASE_URL=https://auth.example"})
	if err == nil {
		err = c.Together()
	}
	fails(t, err, "--hook-supabase-url: must be set with --hook-supabase,") // as dev reads no variable
	for _, environ := range []string{
		"MAILGATE_LISTEN=:0", "MAILGATE_LISTEN=:65535", "MAILGATE_SMTP_RATE=0.000001", "MAILGATE_DRAIN_DELAY=0s & MAILGATE_SHUTDOWN_GRACE=0s",
		"MAILGATE_API_KEYS=web:sixteen-letters.", "MAILGATE_SECRET=sixteen-letters.", "MAILGATE_CONFIG=/dev/null", "MAILGATE_CACHE_BYTES=1TiB",
		redis + " & MAILGATE_REDIS_PREFIX=acme-staging_2" + strings.Repeat("b", 18),
		"MAILGATE_SECRET=trial-secret-not-secret & MAILGATE_SMTP_URL=smtp://mailpit:1025?tls=none",
	} {
		read(t, nil, strings.Split(environ, " & ")...)
	}
}

func TestFile_Mistake_NamesFileAndLine(t *testing.T) {
	for text, want := range map[string]string{
		"locale: en\nteirs: x":                                   ":2: teirs: unknown setting",
		"config: other.yaml":                                     ":1: config: unknown setting",
		"smtp-url: smtps://h":                                    ":1: smtp-url: unknown setting",
		"Locale: en":                                             ":1: unknown setting",
		"locale: en\nlocale: z":                                  ":2: the name is used twice",
		"api_keys: [web:" + hidden + "\nlocale: }":               "this is not valid YAML",
		"- web:" + hidden:                                        ":1: sequence was used where mapping is expected",
		"api_keys: {web: " + hidden + "}":                        ":1: it must be a plain value",
		"api_keys: [[web:" + hidden + "]]":                       ":1: it must be a plain value",
		"locale: en\n---\nlocale: de":                            ": it must be one YAML document",
		"api_keys: web:" + hidden + "\napi_keys_file: /dev/null": ":2: api_keys_file: already set by",
		"\n\ntiers: often":                                       ":3: tiers: ",
	} {
		path := servertest.Write(t, t.TempDir()+"/m.yaml", text)
		_, err := parse([]string{"--config", path}, nil)
		fails(t, err, path)
		if err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	for _, tt := range [][]string{
		{"--tiers: needs a value", "--tiers"}, {"--tiers: needs a value", "--tiers="}, {"--tiers: ", "--tiers", "often"}, {"--fold: bool value", "--fold=maybe"},
		{"unknown flag --teirs, did you mean", "--teirs=" + hidden}, {"--api-keys: ", "--api-keys=" + hidden}, {"--locale: must be one line", "--locale=a\nb"},
	} {
		_, err := parse(tt[1:], nil)
		fails(t, err, tt[0])
	}
}

func TestForServing_Missing_NamesTheSetting(t *testing.T) {
	whole := []string{"MAILGATE_SMTP_URL=smtps://h.example", "MAILGATE_FROM=a@b.example"}
	for _, tt := range []struct {
		environ []string
		want    string
	}{
		{nil, "MAILGATE_SMTP_URL: must be set"},
		{whole[:1], "MAILGATE_FROM: must be set"},
		{append(whole, "MAILGATE_REDIS_URL=redis://h.example"), "MAILGATE_SECRET: must be set with MAILGATE_REDIS_URL"},
		{append(whole, "MAILGATE_LISTEN=:8080"), "MAILGATE_API_KEYS: must be set to listen on :8080"},
		{append(whole, "MAILGATE_TRUSTED_PROXIES=127.0.0.1"), "MAILGATE_API_KEYS: must be set beside MAILGATE_TRUSTED_PROXIES"},
	} {
		fails(t, read(t, nil, tt.environ...).ForServing(), tt.want)
	}
	for _, environ := range [][]string{whole, append(whole, "MAILGATE_REDIS_URL=redis://h.example", "MAILGATE_SECRET="+hidden)} {
		if err := read(t, nil, environ...).ForServing(); err != nil {
			t.Error(err)
		}
	}
}

func TestLoopback_Addresses_OnlyThisMachine(t *testing.T) {
	for listen, want := range map[string]bool{
		"127.0.0.1:80": true, "127.9.9.9:80": true, "[::1]:80": true, "localhost:80": true,
		"0.0.0.0:80": false, ":80": false, "[::]:80": false, "192.0.2.1:80": false, "localhost.example:80": false,
	} {
		if got := read(t, []string{"--listen", listen}).Loopback(); got != want {
			t.Errorf("%s: %v", listen, got)
		}
	}
}

func TestStandby_Settings_NeedRedisAndDirectory(t *testing.T) {
	const redis, dir = "MAILGATE_REDIS_URL=redis://localhost", "MAILGATE_DATA_DIR=/data"
	for _, tt := range []struct {
		standby bool
		environ []string
	}{
		{false, []string{dir}},
		{true, []string{redis, dir}},
		{false, []string{redis}},
		{false, []string{redis, dir, "MAILGATE_ON_STORE_OUTAGE=refuse"}},
		{false, []string{redis, dir, "MAILGATE_REDIS_CONFIRM=1"}},
		{true, []string{redis, dir, "MAILGATE_REDIS_CONFIRM=0", "MAILGATE_ON_STORE_OUTAGE=continue"}},
	} {
		if c := read(t, nil, tt.environ...); c.Standby() != tt.standby || c.UsesDataDir() != (c.RedisURL == "" || tt.standby) {
			t.Errorf("%q: standby %v, data directory %v", tt.environ, c.Standby(), c.UsesDataDir())
		}
	}
}

func TestConfig_Printed_NoSecret(t *testing.T) {
	c := read(t, nil,
		"MAILGATE_API_KEYS=web:1"+hidden+",shop:2"+hidden, "MAILGATE_ADMIN_KEYS=ops:"+hidden, "MAILGATE_FROM=a@b.example", "MAILGATE_SECRET="+hidden,
		"MAILGATE_SMTP_URL=smtps://"+hidden+":"+hidden+"@one.example,smtp://two.example", "MAILGATE_HOOK_LOGTO="+hidden,
		"MAILGATE_REDIS_URL=redis+sentinel://u:"+hidden+"@a:1/0?addr=b:2&password="+hidden+"&master_name=main")
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%v %+v", c.Secret, *c)} {
		if strings.Contains(text, hidden) || !strings.Contains(text, "***") {
			t.Errorf("a secret is printed, or nothing is: %s", text)
		}
	}
	for name, want := range map[string]string{
		"api_keys": "web:***,shop:***", "admin_keys": "ops:***", "secret": "***", "smtp_url": "smtps://one.example:465,smtp://two.example:587",
		"redis_url": "redis+sentinel://***@a:1/0?addr=b:2&password=***&master_name=main", "from": "a@b.example", "templates": "", "data_dir": "",
	} {
		if got := setting(c, name); got.Value != want {
			t.Errorf("%s is shown as %q, want %q", name, got.Value, want)
		}
	}
}

// Any value is refused in one line, or shown, without a secret.
func FuzzSetting(f *testing.F) {
	secrets := []string{"api_keys", "admin_keys", "secret", "smtp_url", "redis_url"}
	for name, text := range map[string]string{
		"api_keys": "web:" + hidden + ",ops:" + hidden + "-2", "admin_keys": "web:" + hidden, "secret": hidden,
		"smtp_url": "smtps://user:" + hidden + "@host,smtp://u:" + hidden + ",@b", "redis_url": "redis://user:" + hidden + "@host:6379/0",
		"trusted_proxies": "10.0.0.0/8,:" + hidden, "tiers": "a=1/1s", "cache_bytes": "1GiB:" + hidden, "from": "a:" + hidden + " <a@b.example>",
		"sync": "true", "smtp_rate": "1e309", "code_life": "1ns", "url": "http://u:" + hidden + "@h", "a\nb": "1",
	} {
		f.Add(name, text)
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		c, err := parse(nil, []string{"MAILGATE_" + strings.ToUpper(name) + "=" + text})
		if err != nil {
			said := strings.ReplaceAll(err.Error(), strings.ToUpper(name), "")
			if strings.ContainsAny(said, "\r\n") || slices.Contains(secrets, name) && strings.Contains(said, hidden) {
				t.Fatalf("%s=%q: %q", name, text, err)
			}
			return
		}
		for _, name := range secrets {
			if shown := setting(c, name).Value; strings.Contains(text, ":"+hidden) && strings.Contains(shown, hidden) {
				t.Fatalf("%s=%q is shown as %q", name, text, shown)
			}
		}
		if strings.ContainsAny(strings.Join(c.Unknown(), ""), "\r\n") {
			t.Fatalf("%q", c.Unknown())
		}
	})
}

// Any file is refused in one line without its values, or is settings.
func FuzzFile(f *testing.F) {
	for _, text := range []string{
		"listen: 127.0.0.1:0\ntiers: [a=1/1s, b=2/1m]", "api_keys: web:" + hidden, "smtp_url:\n- smtps://u:" + hidden + "@h\n", "secret: |\n  " + hidden,
		"listen: {a: b}", "tiers: &a [*a]", "a: b", "- a", "config: x", "? [" + hidden + "]\n: b", "a: " + hidden + "\n  b: c",
	} {
		f.Add(text)
	}
	path := filepath.Join(f.TempDir(), "mailgate.yaml")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "_file") {
			return // a path is repeated: it is no secret
		}
		servertest.Write(t, path, text)
		if _, err := parse([]string{"--config=" + path}, nil); err != nil {
			if said := err.Error(); strings.ContainsAny(said, "\r\n") || strings.Contains(said, ":"+hidden) {
				t.Fatalf("%q: %q", text, said)
			}
		}
	})
}
