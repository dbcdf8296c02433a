package settings_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/cmd/mailgate/settings"
)

// Whatever is set, it is refused in one line or can be shown, and no secret is in either.
func FuzzSetting(f *testing.F) {
	for _, setting := range settings.Catalogue() {
		f.Add(setting.Name, setting.Default)
	}
	for name, text := range map[string]string{
		"api_keys": "web:" + hidden + ",ops:" + hidden + "-2", "admin_keys": "web:" + hidden, "secret": hidden,
		"smtp_url": "smtps://user:" + hidden + "@host,smtp://u:" + hidden + ",@b", "redis_url": "redis://user:" + hidden + "@host:6379/0",
		"trusted_proxies": "10.0.0.0/8,:" + hidden, "tiers": "a=1/1s", "cache_bytes": "1GiB:" + hidden, "from": "a:" + hidden + " <a@b.example>",
		"sync": "true", "smtp_rate": "1e309", "code_life": "1ns", "url": "http://u:" + hidden + "@h",
	} {
		f.Add(name, text)
	}
	f.Add("redis_url", "rediss+sentinel://:"+hidden+"@a,b/m/1?sentinel_password=:"+hidden)
	f.Fuzz(func(t *testing.T, name, text string) {
		s, _, err := settings.Read(nil, []string{"MAILGATE_" + strings.ToUpper(name) + "=" + text})
		if err != nil {
			said := strings.ReplaceAll(err.Error(), strings.ToUpper(name), "")
			if strings.ContainsAny(said, "\r\n") || isSecret(name) && strings.Contains(said, hidden) {
				t.Fatalf("%s=%q: %q", name, text, err)
			}
			return
		}
		for _, setting := range settings.Catalogue() {
			if shown := s.Shown(setting.Name); setting.Secret && strings.Contains(text, ":"+hidden) && strings.Contains(shown, hidden) {
				t.Fatalf("%s=%q is shown as %q", name, text, shown)
			}
		}
	})
}

func isSecret(name string) bool {
	return slices.ContainsFunc(settings.Catalogue(), func(s settings.Setting) bool { return s.Secret && s.Name == name })
}

// Whatever is in a file, it is refused in one line that names its place, without what
// the file says, or is settings.
func FuzzFile(f *testing.F) {
	for _, text := range []string{
		"listen: 127.0.0.1:0\ntiers: [a=1/1s, b=2/1m]", "api_keys: web:" + hidden, "smtp_url:\n- smtps://u:" + hidden + "@h\n", "secret: |\n  " + hidden,
		"listen: {a: b}", "tiers: &a [*a]", "a: b", "- a", "sync: yes", "config: x", "secret_file: /etc/" + hidden, "? [" + hidden + "]\n: b",
	} {
		f.Add(text)
	}
	path := filepath.Join(f.TempDir(), "mailgate.yaml")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "_file") {
			return // a path is repeated: it is no secret
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := settings.Read([]string{"--config=" + path}, nil)
		if err == nil {
			return
		}
		if said := err.Error(); strings.ContainsAny(said, "\r\n") || strings.Contains(said, ":"+hidden) {
			t.Fatalf("%q: %q", text, said)
		}
	})
}
