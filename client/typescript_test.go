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
)

// The TypeScript client: its generated types are current, it builds, its types narrow, and its
// tests pass on a mailgate process.
func TestTypeScript_Package_CompilesAndPasses(t *testing.T) {
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm is not installed")
	}
	root := t.TempDir()
	dir := filepath.Join(root, "client", "ts")
	copyPackage(t, dir)
	for _, file := range []string{"openapi.yaml", "api/web/mailgate-countdown.d.ts"} {
		must(0, os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o700))
		must(0, os.WriteFile(filepath.Join(root, file), must(os.ReadFile("../"+file)), 0o600))
	}
	run(t, dir, nil, "npm", "install", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund")
	run(t, dir, nil, "npm", "run", "generate")
	if !bytes.Equal(must(os.ReadFile(filepath.Join(dir, "openapi.ts"))), must(os.ReadFile("ts/openapi.ts"))) {
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
		"MODEL=" + must(filepath.Abs("testdata/retries.json")),
	}, "node", "--test", "test/client.test.mjs")
}

// copyPackage copies the package without what was installed or built.
func copyPackage(t *testing.T, dir string) {
	t.Helper()
	for _, pattern := range []string{"ts/*", "ts/.npmrc", "ts/test/*"} {
		for _, file := range must(filepath.Glob(pattern)) {
			if info := must(os.Stat(file)); info.IsDir() {
				continue
			}
			to := filepath.Join(dir, strings.TrimPrefix(file, "ts/"))
			must(0, os.MkdirAll(filepath.Dir(to), 0o700))
			must(0, os.WriteFile(to, must(os.ReadFile(file)), 0o600))
		}
	}
}

func run(t *testing.T, dir string, environ []string, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environ...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}
