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

	"github.com/chromedp/chromedp"

	"github.com/mailgate/mailgate/internal/need"
)

// On a server that renders, the module loads and does nothing. A worker has no elements
// either.
func whereThereAreNoElements(t *testing.T, v *tab) {
	p := newPlayer(t, beside)
	v.do(chromedp.Navigate(p.URL + "/elsewhere"))
	got := get[string](v, `new Promise((resolve) => {
		const worker = new Worker("/worker.js", { type: "module" });
		worker.onmessage = ({ data }) => resolve(data);
		worker.onerror = ({ message }) => resolve("error: " + message);
	})`)
	if got != "MailgateCountdown without HTMLElement" {
		t.Errorf("the worker says %q", got)
	}
}

func sizeOnTheWire(t *testing.T, v *tab) {
	p := newPlayer(t, "")
	v.do(chromedp.Navigate(p.URL + "/elsewhere"))
	v.received.Store(0)
	v.run(`fetch("/mailgate-countdown.js").then((response) => response.text())`)
	v.until("it is received", func() bool { return v.received.Load() > 1000 })
	if n := v.received.Load(); n >= 8*1024 {
		t.Errorf("%d bytes, and 8 KB is the most", n)
	} else {
		t.Logf("%d bytes with their headers", n)
	}
}

// typesFile describes the interface to people and to editors.
//
//go:embed mailgate-countdown.d.ts
var typesFile string

// A page that is typed, by a compiler as strict as it can be, gets from the types what it needs.
func TestPagesThatAreTyped(t *testing.T) {
	compiler := need.Program(t, "tsc")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mailgate-countdown.d.ts"), []byte(typesFile), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "page.tsx"), must(os.ReadFile("testdata/page.tsx"))(t), 0o600); err != nil {
		t.Fatal(err)
	}
	compile := exec.CommandContext(t.Context(), compiler, "--noEmit", "--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess",
		"--jsx", "preserve", "--target", "es2022", "--moduleResolution", "node", "page.tsx")
	compile.Dir = dir
	if out, err := compile.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// What the types promise is there.
func theTypesAreTrue(t *testing.T, v *tab, p *player) {
	v.visit(p)
	_, class, _ := strings.Cut(typesFile, "\nexport class ")
	class, _, found := strings.Cut(class, "\n}\n")
	members := regexp.MustCompile(`(?m)^  (?:readonly |get |set |static )?(\w+)[(:]`).FindAllStringSubmatch(class, -1)
	if !found || len(members) < 14 {
		t.Fatalf("found %d members in the types", len(members))
	}
	for _, member := range members {
		if !get[bool](v, fmt.Sprintf(`[document.querySelector("mailgate-countdown"), customElements.get("mailgate-countdown")].some((it) => %q in it)`, member[1])) {
			t.Errorf("the types promise %s, which is not there", member[1])
		}
	}
}
