// Package need finds the programs that tests start, such as redis-server.
//
// Without the program the test is skipped, so that `go test ./...` passes with Go alone.
// With MAILGATE_TEST_ALL=1, which `make test` sets, it fails.
package need

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// packages are the Debian packages of programs with another name.
var packages = map[string]string{"cc": "gcc", "exim4": "exim4-daemon-light", "node": "nodejs", "tsc": "node-typescript", "php": "php-cli", "promtool": "prometheus"}

// Program returns the path of a program, or skips the test where it is missing.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, found := Find(name)
	if !found {
		Missing(t, fmt.Sprintf("%s is missing: install the Debian package %s or run make test", name, cmp.Or(packages[name], name)))
	}
	return path
}

// Find looks for a program in PATH and in the directories of the administrator, which are not in
// every user's PATH.
func Find(name string) (path string, found bool) {
	for _, place := range []string{"", "/usr/sbin/", "/usr/local/sbin/"} {
		if path, err := exec.LookPath(place + name); err == nil {
			return path, true
		}
	}
	return "", false
}

// Missing skips the test, or fails it with MAILGATE_TEST_ALL=1.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("MAILGATE_TEST_ALL") == "1" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// Long skips a test that takes minutes or fetches the tools of others, except in `make long`.
func Long(t testing.TB) {
	t.Helper()
	if os.Getenv("MAILGATE_TEST_LONG") == "" {
		t.Skip("make long runs it")
	}
}
