package client_test

import (
	"bytes"
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

// The TypeScript client: its generated types are current, it builds, its types narrow, and its
// tests pass on a mailgate process.
func TestTypeScript_Package_CompilesAndPasses(t *testing.T) {
	need.Program(t, "npm")
	root := t.TempDir()
	list := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "ts", "../openapi.yaml", "../api/web/mailgate-countdown.d.ts")
	for _, file := range strings.Fields(string(must.Have(list.Output()))) { // without what was installed or built
		to := filepath.Join(root, "client", file)
		must.Have(0, os.MkdirAll(filepath.Dir(to), 0o700))
		must.Have(0, os.WriteFile(to, must.Have(os.ReadFile(file)), 0o600))
	}
	dir := filepath.Join(root, "client", "ts")
	run(t, dir, nil, "npm", "install", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund")
	run(t, dir, nil, "npm", "run", "generate")
	if !bytes.Equal(must.Have(os.ReadFile(filepath.Join(dir, "openapi.ts"))), must.Have(os.ReadFile("ts/openapi.ts"))) {
		t.Error("client/ts/openapi.ts is not what openapi.yaml generates: run make types")
	}
	run(t, dir, nil, "npm", "run", "build")
	run(t, dir, nil, "node_modules/.bin/tsc", "--project", "test")

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

func run(t *testing.T, dir string, environ []string, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environ...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}
