package settings_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cmd/mailgate/settings"
	"github.com/mailgate/mailgate/throttle"
)

// write makes a file in a directory of the test's own and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, args, environ []string) *settings.Settings {
	t.Helper()
	s, rest, err := settings.Read(args, environ)
	if err != nil {
		t.Fatal(err)
	}
	if len(rest) > 0 {
		t.Fatalf("left over: %q", rest)
	}
	return s
}

func TestDefaults(t *testing.T) {
	s := read(t, nil, []string{"PATH=/bin", "HOME=/"})
	for name, wrong := range map[string]bool{
		"listen":          s.Listen != "127.0.0.1:8080",
		"tiers":           s.Tiers.String() != throttle.DefaultPolicy().String(),
		"fold":            !s.Fold,
		"data_dir":        s.DataDir != "mailgate-data",
		"sync":            s.Sync,
		"cache_mailboxes": s.CacheMailboxes != cache.DefaultSize().Entries,
		"cache_bytes":     int64(s.CacheBytes) != cache.DefaultSize().Bytes,
		"redis_url":       s.RedisURL != "",
		"redis_prefix":    s.RedisPrefix != "mailgate",
		"on_store_outage": s.OnStoreOutage != "continue",
		"redis_timeout":   s.RedisTimeout != 250*time.Millisecond,
		"smtp_url":        len(s.SMTPURL) != 0,
		"smtp_rate":       s.SMTPRate != 0,
		"code_life":       s.CodeLife != 10*time.Minute,
		"log_level":       s.LogLevel != slog.LevelInfo,
		"shutdown_grace":  s.ShutdownGrace != 30*time.Second,
	} {
		if wrong {
			t.Errorf("the default of %s is not what the documentation says", name)
		}
	}
}

// A process that has no directory for its own history, or whose sends replicas have to confirm,
// refuses by default while Redis is away, and shows so.
func TestOnStoreOutage_NotGiven_FollowsTheRest(t *testing.T) {
	const redis, dir = "MAILGATE_REDIS_URL=redis://localhost", "MAILGATE_DATA_DIR=/data"
	for _, tt := range []struct {
		environ []string
		value   string
		goesOn  bool
		level   settings.Level
	}{
		{[]string{redis}, "refuse", false, settings.Default},
		{[]string{redis, "MAILGATE_DATA_DIR=:memory:"}, "refuse", false, settings.Default},
		{[]string{redis, dir}, "continue", true, settings.Default},
		{[]string{redis, dir, "MAILGATE_REDIS_CONFIRM=0"}, "continue", true, settings.Default},
		{[]string{redis, dir, "MAILGATE_REDIS_CONFIRM=0", "MAILGATE_ON_STORE_OUTAGE=continue"}, "continue", true, settings.Environment},
		{[]string{redis, dir, "MAILGATE_REDIS_CONFIRM=1"}, "refuse", false, settings.Default},
		{[]string{redis, dir, "MAILGATE_REDIS_CONFIRM=1", "MAILGATE_ON_STORE_OUTAGE=refuse"}, "refuse", false, settings.Environment},
	} {
		s := read(t, nil, tt.environ)
		level := s.Origin("on_store_outage").Level
		if s.OnStoreOutage != tt.value || s.Shown("on_store_outage") != tt.value || s.GoesOn() != tt.goesOn || level != tt.level {
			t.Errorf("%q: %s, shown as %s from %s, goes on: %v", tt.environ, s.OnStoreOutage, s.Shown("on_store_outage"), level, s.GoesOn())
		}
	}
}

// The same setting in all four places: the flag wins, then the environment, then the
// file.
func TestPrecedence(t *testing.T) {
	path := write(t, "mailgate.yaml", "locale: fr\n")
	inFile := []string{"MAILGATE_CONFIG=" + path}
	tests := []struct {
		name          string
		args, environ []string
		value         string
		level         settings.Level
		place         string
	}{
		{"default", nil, nil, "en", settings.Default, "locale"},
		{"file", nil, inFile, "fr", settings.File, path + ":1: locale"},
		{"file by flag", []string{"--config", path}, nil, "fr", settings.File, path + ":1: locale"},
		{"environment", nil, append(inFile, "MAILGATE_LOCALE=de"), "de", settings.Environment, "MAILGATE_LOCALE"},
		{"empty environment", nil, append(inFile, "MAILGATE_LOCALE="), "fr", settings.File, path + ":1: locale"},
		{"flag", []string{"--locale=zh"}, append(inFile, "MAILGATE_LOCALE=de"), "zh", settings.Flag, "--locale"},
		{"flag in two words", []string{"--locale", "zh"}, nil, "zh", settings.Flag, "--locale"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := read(t, tt.args, tt.environ)
			got := s.Origin("locale")
			if s.Locale != tt.value || got.Level != tt.level || got.Place != tt.place {
				t.Errorf("%q from %s (%s), want %q from %s (%s)", s.Locale, got.Place, got.Level, tt.value, tt.place, tt.level)
			}
		})
	}
}

// Every kind of value, as YAML writes it.
func TestFile(t *testing.T) {
	s := read(t, []string{"--config", write(t, "m.yaml", `# a comment
listen: 127.0.0.1:0
api_keys:
  - web:first-long-secret
  - "shop:second#long-secret"
trusted_proxies: [10.0.0.0/8, 192.0.2.7]
tiers: minute=1/60s, hour=5/1h
fold: false
sync: true
cache_bytes: 64MiB
smtp_url: ["smtps://u:p,w@one.example", "smtp://two.example"]
from: '"Acme, Ltd" <no-reply@acme.example>'
smtp_rate: 2.5
smtp_queue: 7
redis_url:
code_life: 5m
`)}, nil)
	want := []any{
		settings.Keys("web:first-long-secret,shop:second#long-secret"), "[10.0.0.0/8 192.0.2.7/32]", 2, false, true,
		settings.Bytes(64 << 20), "[smtps://one.example:465 smtp://two.example:587]", 2.5, 7, 5 * time.Minute,
	}
	got := []any{
		s.APIKeys, fmt.Sprint(s.TrustedProxies), len(s.Tiers.Tiers()), s.Fold, s.Sync,
		s.CacheBytes, fmt.Sprint([]any{s.SMTPURL[0], s.SMTPURL[1]}), s.SMTPRate, s.SMTPQueue, s.CodeLife,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %v\nwant %v", got, want)
	}
	if s.Origin("redis_url").Given() {
		t.Error("a null counts as given")
	}
}

func TestSecretsFromFiles(t *testing.T) {
	key := write(t, "key", "web:from-a-file-of-its-own\n")
	for name, s := range map[string]*settings.Settings{
		"flag":        read(t, []string{"--api-keys-file", key}, nil),
		"environment": read(t, nil, []string{"MAILGATE_API_KEYS_FILE=" + key}),
		"file":        read(t, []string{"--config", write(t, "m.yaml", "api_keys_file: "+key)}, nil),
	} {
		if got := s.APIKeys.First(); got != "from-a-file-of-its-own" {
			t.Errorf("%s: the key is %q", name, got)
		}
	}
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{
		{"alice@example.com", "--fold=false", "bob@example.com"},
		{"--fold=false", "alice@example.com", "bob@example.com"},
		{"--fold=false", "--", "alice@example.com", "bob@example.com"},
	} {
		s, rest, err := settings.Read(args, nil)
		if err != nil || s.Fold || !reflect.DeepEqual(rest, []string{"alice@example.com", "bob@example.com"}) {
			t.Errorf("%q: fold %v, left over %q, %v", args, s.Fold, rest, err)
		}
	}
	if _, rest, err := settings.Read([]string{"--sync", "--", "--fold"}, nil); err != nil || !reflect.DeepEqual(rest, []string{"--fold"}) {
		t.Errorf("after --: %q, %v", rest, err)
	}
}

// What an orchestrator adds for a service that is called mailgate is nobody's setting.
func TestOrchestratorsVariables(t *testing.T) {
	read(t, nil, []string{
		"MAILGATE_PORT=tcp://10.0.0.1:80", "MAILGATE_PORT_80_TCP_ADDR=10.0.0.1", "MAILGATE_SERVICE_HOST=10.0.0.1",
		"MAILGATE_SERVICE_PORT=80", "MAILGATE_SERVICE_PORT_HTTP=80", "MAILGATE_NAME=/web/mailgate",
		"MAILGATE_REDIS_PORT=tcp://10.0.0.2:6379", "MAILGATE_REDIS_PORT_6379_TCP=tcp://10.0.0.2:6379",
		"MAILGATE_REDIS_PORT_6379_TCP_ADDR=10.0.0.2", "MAILGATE_REDIS_PORT_53_UDP_PROTO=udp", "MAILGATE_REDIS_PORT_9_SCTP_PORT=9",
		"MAILGATE_PORT_8080_TCP_START=tcp://10.0.0.1:8080", "MAILGATE_PORT_8080_TCP_PORT_END=8081", "MAILGATE_REDIS_NAME=/app/mailgate-redis",
		"MAILGATE_REDIS_SERVICE_HOST=10.0.0.2", "MAILGATE_REDIS_SERVICE_PORT=6379", "MAILGATE_REDIS_SERVICE_PORT_REDIS=6379",
	})
	for _, name := range []string{"MAILGATE_REDIS_PORTS", "MAILGATE_SMTP_PORT", "MAILGATE_FROM_NAME", "MAILGATE_SMTP_PORT_NUMBER", "MAILGATE_SERVICE"} {
		_, _, err := settings.Read(nil, []string{name + "=x"})
		complains(t, err, name+": there is no such setting")
	}
}

func TestLoopback(t *testing.T) {
	for listen, want := range map[string]bool{
		"127.0.0.1:80": true, "127.9.9.9:80": true, "[::1]:80": true, "localhost:80": true,
		"0.0.0.0:80": false, ":80": false, "[::]:80": false, "192.0.2.1:80": false, "mail.example:80": false,
		"localhost.example:80": false,
	} {
		s := read(t, []string{"--api-keys=web:sixteen-letters-", "--listen", listen}, nil)
		if got := s.Loopback(); got != want {
			t.Errorf("%s: %v", listen, got)
		}
	}
}

// Settings that have no effect are named, so that they can be said at the start.
func TestUnused(t *testing.T) {
	const redis, dir, sync, size = "MAILGATE_REDIS_URL=redis://localhost", "MAILGATE_DATA_DIR=/data", "MAILGATE_SYNC=true", "MAILGATE_CACHE_BYTES=1MiB"
	for _, tt := range []struct{ environ, unused []string }{
		{[]string{dir, sync, size}, nil},
		{[]string{redis, dir, sync, size}, nil}, // all for what it goes on with
		{[]string{redis, sync, size}, []string{"MAILGATE_SYNC", "MAILGATE_CACHE_BYTES"}},
		{[]string{redis, dir, sync, "MAILGATE_ON_STORE_OUTAGE=refuse"}, []string{"MAILGATE_DATA_DIR", "MAILGATE_SYNC"}},
	} {
		if got := read(t, nil, tt.environ).Unused(); !reflect.DeepEqual(got, tt.unused) {
			t.Errorf("unused of %q: %q, want %q", tt.environ, got, tt.unused)
		}
	}
}

// ReadFlags hears the command line and what it is given instead, nothing else.
func TestReadFlags(t *testing.T) {
	t.Setenv("MAILGATE_LOCALE", "de")
	s, _, err := settings.ReadFlags([]string{"--tiers=q=1/1s"}, map[string]string{"data_dir": ":memory:", "tiers": "r=1/2s"})
	if err != nil || s.Locale != "en" || s.DataDir != ":memory:" || s.Tiers.String() != "q=1/1s" {
		t.Errorf("%v %v", s, err)
	}
	if s.Origin("data_dir").Given() || !s.Origin("tiers").Given() {
		t.Error("what is put in the place of a default was not given by anybody")
	}
	for _, wrong := range []string{"--config=x", "--teirs=q=1/1s", "--tiers=often", "--listen=8080"} {
		if _, _, err := settings.ReadFlags([]string{wrong}, nil); err == nil {
			t.Errorf("%s was taken", wrong)
		}
	}
}

// Every setting has all it needs to be found in the help, and its default can be read.
func TestCatalogue(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range settings.Catalogue() {
		if s.Help == "" || s.Group == "" || seen[s.Name] || strings.ToLower(s.Name) != s.Name {
			t.Errorf("%+v is not whole", s)
		}
		seen[s.Name] = true
	}
}
