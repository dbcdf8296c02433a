package client_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A program of somebody else imports this package, with no network and nothing in its
// module cache: nothing but the standard library is needed to build it.
func TestAStrangerImportsNothingElse(t *testing.T) {
	here, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := map[string]string{
		"go.mod": "module stranger.example\n\ngo 1.26\n\nrequire github.com/mailgate/mailgate v0.0.0\n\nreplace github.com/mailgate/mailgate => " + here + "\n",
		"main.go": `package main

import "github.com/mailgate/mailgate/client"

func main() {
	_, err := client.New("https://mailgate.internal", "", client.Options{})
	if err != nil {
		panic(err)
	}
}
`,
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=mod -modcacherw", "GOMODCACHE="+filepath.Join(dir, "modules"), "GOWORK=off", "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run("build", "-o", filepath.Join(dir, "program"), ".")
	foreign := run("list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
	if got := strings.Fields(foreign); strings.Join(got, " ") != "github.com/mailgate/mailgate/client stranger.example" {
		t.Errorf("the program is made of %q", got)
	}
	if sums, err := os.ReadFile(filepath.Join(dir, "go.sum")); err == nil && len(sums) > 0 {
		t.Errorf("modules were asked for:\n%s", sums)
	}
}
