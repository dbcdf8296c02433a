package web_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mailgate/mailgate"
	"github.com/mailgate/mailgate/api/web"
	"github.com/mailgate/mailgate/internal/must"
)

// What the page says is escaped, and a contract that cannot be read is an error.
func TestDocs_Contract_IsEscapedOrRefused(t *testing.T) {
	pages := fstest.MapFS{}
	for _, name := range []string{"getting-started", "sending", "countdown", "problems"} {
		pages["docs/"+name+".md"] = &fstest.MapFile{}
	}
	text := "info:\n  title: mailgate\n  description: |\n    <x>\n\n    `<a>` [b](https://c.example/d#e) [f](javascript:g)\n"
	made, err := web.Docs([]byte(text), pages, "<v>")
	if err != nil || strings.Contains(string(made), "<x>") || strings.Contains(string(made), "<v>") || strings.Contains(string(made), `"javascript:`) ||
		!strings.Contains(string(made), `<code>&lt;a&gt;</code> <a href="https://c.example/d#e">b</a>`) {
		t.Errorf("%v\n%s", err, made)
	}
	for _, text := range []string{"\t: [", "paths: {/x: {get: {}}}"} {
		if _, err := web.Docs([]byte(text), pages, "1"); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

// The page is made at its first request, by a caller who waits for it.
func BenchmarkDocs(b *testing.B) {
	for b.Loop() {
		must.Have(web.Docs(mailgate.OpenAPI, mailgate.Pages, "1"))
	}
}
