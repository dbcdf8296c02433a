package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/mailgate/mailgate"
	"github.com/mailgate/mailgate/internal/must"
)

func TestPage_Committed_IsCurrent(t *testing.T) {
	explained := string(must.Get(os.ReadFile("../../../docs/problems.md"))(t))
	if want := must.Get(page(mailgate.OpenAPI, explained))(t); !bytes.Equal(must.Get(os.ReadFile("../docs.html"))(t), want) {
		t.Error("api/web/docs.html is not what openapi.yaml and docs/problems.md say: run go generate ./api/web")
	}
}

// What the page says is escaped, and a contract that cannot be read is an error.
func TestPage_Contract_IsEscapedOrRefused(t *testing.T) {
	text := "info:\n  title: mailgate\n  description: |\n    <x>\n\n    `<a>` [b](https://c.example/d#e) [f](javascript:g)\n"
	made, err := page([]byte(text), "")
	if err != nil || strings.Contains(string(made), "<x>") || strings.Contains(string(made), `"javascript:`) ||
		!strings.Contains(string(made), `<code>&lt;a&gt;</code> <a href="https://c.example/d#e">b</a>`) {
		t.Errorf("%v\n%s", err, made)
	}
	for _, text := range []string{"\t: [", "paths: {/x: {get: {}}}"} {
		if _, err := page([]byte(text), ""); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
