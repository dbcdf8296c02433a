package web_test

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/need"
)

// typesFile describes the interface to people and to editors.
//
//go:embed mailgate-countdown.d.ts
var typesFile string

// The file is small, and does nothing where there are no elements: on a server that renders, or
// in a worker.
func TestCountdownFile_Anywhere_LoadsSmall(t *testing.T) {
	p, v := newSite(t, beside)
	v.visit(p.URL + "/elsewhere")
	if got := get[string](v, `new Promise((resolve) => {
		const worker = new Worker("/worker.js", { type: "module" });
		worker.onmessage = ({ data }) => resolve(data);
		worker.onerror = ({ message }) => resolve("error: " + message);
	})`); got != "MailgateCountdown without HTMLElement" {
		t.Errorf("the worker says %q", got)
	}
	v.received.Store(0)
	v.run(`fetch("/mailgate-countdown.js").then((response) => response.text())`)
	v.until("it is received", func() bool { return v.received.Load() > 1000 })
	if n := v.received.Load(); n >= 8*1024 {
		t.Errorf("%d bytes, and 8 KB is the most", n)
	}
}

// What the types promise is there.
func TestCountdownTypes_Members_Exist(t *testing.T) {
	_, v := newSite(t, beside)
	_, class, _ := strings.Cut(typesFile, "\nexport class ")
	class, _, found := strings.Cut(class, "\n}\n")
	members := regexp.MustCompile(`(?m)^  (?:readonly |get |set |static )?(\w+)[(:]`).FindAllStringSubmatch(class, -1)
	if !found || len(members) < 14 {
		t.Fatalf("found %d members in the types", len(members))
	}
	for _, member := range members {
		v.is(fmt.Sprintf(`[document.querySelector("mailgate-countdown"), customElements.get("mailgate-countdown")].some((it) => %q in it)`, member[1]), "true")
	}
}

// A typed page gets what it needs from the types, by a compiler as strict as it can be.
func TestCountdownTypes_StrictCompiler_Accepts(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"mailgate-countdown.d.ts": typesFile, "page.tsx": string(must(os.ReadFile("testdata/page.tsx"))(t))} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	compile := exec.CommandContext(t.Context(), need.Program(t, "tsc"), "--noEmit", "--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess",
		"--jsx", "preserve", "--target", "es2022", "--moduleResolution", "node", "page.tsx")
	compile.Dir = dir
	if out, err := compile.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
