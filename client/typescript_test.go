package client_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/need"
)

// The TypeScript client: it builds from openapi.yaml, its types narrow, and its
// tests pass on a mailgate process.
func TestTypeScript_Package_CompilesAndPasses(t *testing.T) {
	need.Program(t, "npm")
	root := t.TempDir()
	list := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "ts", "../openapi.yaml", "../LICENSE", "../api/web/mailgate-countdown.js", "../api/web/mailgate-countdown.d.ts")
	for _, file := range strings.Fields(string(must.Have(list.Output()))) { // without what was installed or built
		to := filepath.Join(root, "client", file)
		must.Have(0, os.MkdirAll(filepath.Dir(to), 0o700))
		must.Have(0, os.WriteFile(to, must.Have(os.ReadFile(file)), 0o600))
	}
	dir := filepath.Join(root, "client", "ts")
	run(t, dir, nil, "npm", "install", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund")
	run(t, dir, nil, "npm", "run", "build")
	run(t, dir, nil, "node_modules/.bin/vue-tsc", "--project", "test")

	run(t, dir, nil, "npm", "pack", "--ignore-scripts")
	installed := t.TempDir()
	must.Have(0, os.WriteFile(filepath.Join(installed, "package.json"), []byte(`{"type":"module"}`), 0o600))
	run(t, installed, nil, "npm", "install", "--foreground-scripts", "--offline", "--no-audit", "--no-fund", filepath.Join(dir, "mailgate-0.1.0.tgz"))
	run(t, installed, nil, "node", "-e", installedPackage)

	s := theServer()
	mails := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode(s.Mails(r.FormValue("to")))
	}))
	t.Cleanup(mails.Close)
	run(t, dir, []string{
		"MAILGATE_URL=" + s.URL, "MAILGATE_KEY=" + key, "LOSING_URL=" + newFaults(t, s.URL, 2).URL, "MAILS_URL=" + mails.URL,
		"MODEL=" + must.Have(filepath.Abs("testdata/retries.json")),
	}, "node", "--test", "test/client.test.mjs")
}

// installedPackage imports what another program does, and holds that nothing ran at the installation.
const installedPackage = `
const { Mailgate } = await import("mailgate");
const { MailgateCountdown } = await import("mailgate/countdown"); // without elements, as on a server that renders
const { default: about } = await import("mailgate/package.json", { with: { type: "json" } });
if (!Mailgate || !MailgateCountdown || !about.license || !about.repository || !about.keywords.length) throw Error("incomplete");
for (const script of ["preinstall", "install", "postinstall", "prepare"]) if (about.scripts[script]) throw Error(script);
for (const file of ["LICENSE", "README.md", "react.d.ts", "vue.d.ts", "dist/countdown.d.ts"]) fs.statSync("node_modules/mailgate/" + file);
if (fs.readdirSync("node_modules").filter((name) => !name.startsWith(".")).join() !== "mailgate") throw Error("it has dependencies");
`

func run(t *testing.T, dir string, environ []string, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environ...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}
