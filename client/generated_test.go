package client_test

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/need"
	"github.com/mailgate/mailgate/internal/servertest"
)

// contract stores /openapi.json of the server in a folder.
func contract(t *testing.T, dir string) {
	t.Helper()
	response := must.Have(http.Get(theServer().URL + "/openapi.json"))
	defer response.Body.Close()
	var text bytes.Buffer
	must.Have(text.ReadFrom(response.Body))
	servertest.Write(t, filepath.Join(dir, "openapi.json"), text.String())
}

const sentAndRefused = "sent 60000\nrefused mailbox minute\n"

// What generators for Go make of the contract compiles, sends, and reads a refusal.
func TestGenerated_Go_SendsAndReadsRefusal(t *testing.T) {
	need.Long(t)
	for name, generate := range map[string][]string{
		"oapi/v2.7.0": {"github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.7.0", "-generate", "types,client", "-package", "api", "-o", "api/api.go"},
		"oapi/v2.8.2": {"github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2", "-generate", "types,client", "-package", "api", "-o", "api/api.go"},
		"ogen/v1.24":  {"github.com/ogen-go/ogen/cmd/ogen@v1.24.0", "-target", "api", "-package", "api"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, program := t.TempDir(), filepath.Dir(name)
			contract(t, dir)
			servertest.Write(t, dir+"/main.go", string(must.Have(os.ReadFile("testdata/generated/"+program+"/main.go"))))
			servertest.Write(t, dir+"/go.mod", "module acme.example/generated\ngo 1.26.0\n")
			must.Have(0, os.MkdirAll(dir+"/api", 0o700))
			run(t, dir, nil, "go", append(append([]string{"run"}, generate...), "openapi.json")...)
			run(t, dir, nil, "go", "mod", "tidy")
			run(t, dir, nil, "go", "build", "-o", "program", ".")
			prints(t, dir, sentAndRefused, "./program", newAddress())
		})
	}
}

// The same of generators for TypeScript.
func TestGenerated_TypeScript_SendsAndReadsRefusal(t *testing.T) {
	need.Long(t)
	need.Program(t, "npm")
	for program, generate := range map[string][]string{
		"hey.ts":   {"openapi-ts", "-i", "openapi.json", "-o", "api"},
		"fetch.ts": {"openapi-typescript", "openapi.json", "--output", "api.ts"},
	} {
		t.Run(program, func(t *testing.T) {
			dir := t.TempDir()
			contract(t, dir)
			servertest.Write(t, dir+"/main.ts", string(must.Have(os.ReadFile("testdata/generated/"+program))))
			servertest.Write(t, dir+"/package.json", `{"type":"module"}`)
			run(t, dir, nil, "npm", "install", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund",
				"typescript@5.9.3", "@types/node@20", "@hey-api/openapi-ts@0.99.0", "openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "tsx@4.23.15")
			run(t, dir, nil, "npx", generate...)
			run(t, dir, nil, "npx", "tsc", "--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "es2022", "--moduleResolution", "bundler", "--types", "node", "main.ts")
			prints(t, dir, sentAndRefused, "npx", "tsx", "main.ts", theServer().URL, key, newAddress())
		})
	}
}

// The linter has no error of its default rules.
func TestContract_Redocly_FindsNoError(t *testing.T) {
	need.Long(t)
	need.Program(t, "npm")
	dir := t.TempDir()
	servertest.Write(t, dir+"/openapi.yaml", string(must.Have(os.ReadFile("../openapi.yaml"))))
	run(t, dir, nil, "npx", "--yes", "--ignore-scripts", "@redocly/cli@2.77.0", "lint", "openapi.yaml")
}

// prints runs a program that must print this.
func prints(t *testing.T, dir, want, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GATE_URL="+theServer().URL, "GATE_KEY="+key)
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != want {
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}
