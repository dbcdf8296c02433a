package api_test

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/api/web"
)

// The page needs no key, its policy allows this server only, and every file that it loads exists.
func TestConsole_Page_LoadsFromThisServerOnly(t *testing.T) {
	r := newRig(t, setup{})
	got := r.do("GET", "/admin", "", "")
	got.is(t, 200, "")
	got.carries(t, map[string]string{
		"Content-Type": "text/html; charset=utf-8",
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
			"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
		"Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
	})
	named := regexp.MustCompile(`(?:href|src)="(/admin/console/[^"]+)"|from "\./([^"]+)"`)
	seen := map[string]bool{}
	var visit func(text string)
	visit = func(text string) {
		for _, found := range named.FindAllStringSubmatch(text, -1) {
			path := found[1]
			if path == "" {
				path = "/admin/console/" + found[2]
			}
			if seen[path] {
				continue
			}
			seen[path] = true
			part := r.do("GET", path, "", "")
			part.is(t, 200, "")
			want := must(fs.ReadFile(web.FS(), strings.TrimPrefix(path, "/admin/console/")))(t)
			if part.text != string(want) {
				t.Errorf("%s is not the file", path)
			}
			visit(part.text)
		}
	}
	visit(got.text)
	if len(seen) != 14 {
		t.Errorf("the page loads %v", seen)
	}
}

// The page knows whether to ask for a key.
func TestConsole_NoKeys_SaysSo(t *testing.T) {
	for want, options := range map[string]func(*api.Options){"asked-for": nil, "none": keyless} {
		if got := newRig(t, setup{options: options}).do("GET", "/admin", "", ""); !strings.Contains(got.text, `<meta name="mailgate-key" content="`+want+`">`) {
			t.Errorf("the page does not say %s", want)
		}
	}
}
