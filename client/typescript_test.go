package client_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	needs "github.com/mailgate/mailgate/internal/need"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

// The client in TypeScript is built and checked here, and its own tests are run.

// run runs a program and fails the test with what it wrote unless it succeeds.
func run(t testing.TB, dir string, environ []string, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), needs.Program(t, name), args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environ...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// build compiles the package as its own build does, into a copy of it.
func build(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("ts")); err != nil {
		t.Fatal(err)
	}
	run(t, dir, nil, "tsc", "--project", ".")
	return dir
}

func TestTypeScript(t *testing.T) {
	dir := build(t)
	t.Run("types", func(t *testing.T) {
		run(t, dir, nil, "tsc", "--project", "test")
	})
	t.Run("package", func(t *testing.T) { checkPackage(t, dir) })
	module := "MAILGATE_JS=" + (&url.URL{Scheme: "file", Path: filepath.Join(dir, "dist", "mailgate.js")}).String()
	for _, name := range []string{"repeat", "answers", "edge"} {
		t.Run(name, func(t *testing.T) {
			run(t, dir, []string{module}, "node", "--test", "test/"+name+".test.mjs")
		})
	}
	t.Run("real", func(t *testing.T) {
		box := need(sandbox.Start(sandbox.Options{}))
		t.Cleanup(func() { box.Close() })
		server := startMailgate(t, box.URL())
		run(t, dir, []string{module, "MAILGATE_URL=" + server, "MAILGATE_KEY=" + key, "MAILGATE_ADMIN_KEY=" + opsKey, "TEST_URL=" + tools(t, box, server)},
			"node", "--test", "test/real.test.mjs")
	})
}

// What the package says of itself is there, and it depends on nothing.
func checkPackage(t *testing.T, dir string) {
	var about struct {
		Type, Types  string
		Exports      map[string]map[string]string
		Dependencies map[string]string
	}
	if err := json.Unmarshal(need(os.ReadFile(filepath.Join(dir, "package.json"))), &about); err != nil {
		t.Fatal(err)
	}
	if len(about.Dependencies) > 0 || about.Type != "module" {
		t.Errorf("%+v", about)
	}
	for _, file := range []string{about.Types, about.Exports["."]["types"], about.Exports["."]["default"]} {
		if info, err := os.Stat(filepath.Join(dir, file)); file == "" || err != nil || info.IsDir() {
			t.Errorf("the package names the file %q: %v", file, err)
		}
	}
}

// startMailgate builds mailgate, starts it as a process and returns its URL.
func startMailgate(t testing.TB, relay string) string {
	t.Helper()
	dir := t.TempDir()
	binary, rules := filepath.Join(dir, "mailgate"), filepath.Join(dir, "rules.yaml")
	run(t, "..", nil, "go", "build", "-race", "-o", binary, "./cmd/mailgate") // as the tests are, so that nearly all is compiled already
	if err := os.WriteFile(rules, []byte("actions:\n  - name: reply\n    limit: minute=1/60s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "serve")
	cmd.Env = []string{
		"MAILGATE_LISTEN=127.0.0.1:0", "MAILGATE_DATA_DIR=:memory:", "MAILGATE_RULES=" + rules, "MAILGATE_SMTP_URL=" + relay,
		"MAILGATE_API_KEYS=app:" + key, "MAILGATE_ADMIN_KEYS=ops:" + opsKey, "MAILGATE_FROM=Acme <no-reply@acme.example>",
	}
	log := need(cmd.StderrPipe())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	served, text := make(chan string, 1), &strings.Builder{}
	read := make(chan struct{})
	go func() { defer close(read); findAddress(io.TeeReader(log, text), served) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		<-read
		_ = cmd.Wait()
		if strings.Contains(text.String(), key) || strings.Contains(text.String(), "@example.com") {
			t.Errorf("a key or an address is in the log:\n%s", text)
		}
	})
	select {
	case address := <-served:
		return "http://" + address
	case <-read:
		t.Fatalf("mailgate ends: %s", text)
	case <-time.After(time.Minute):
		t.Fatal("mailgate does not serve")
	}
	return ""
}

// findAddress reads the log to its end, and tells where mailgate serves.
func findAddress(log io.Reader, served chan<- string) {
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var line struct{ Msg, Address string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
			served <- line.Address
		}
	}
}

// tools serves what tests in another language need of this one: the mails of the relay,
// and proxies that lose replies.
func tools(t testing.TB, box *sandbox.Server, mailgate string) string {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /mails", func(w http.ResponseWriter, r *http.Request) {
		texts := []string{}
		for _, mail := range box.List() {
			if len(mail.To) == 1 && strings.EqualFold(mail.To[0], r.FormValue("to")) {
				texts = append(texts, mail.Text)
			}
		}
		if err := json.NewEncoder(w).Encode(texts); err != nil {
			t.Errorf("telling of mails: %v", err)
		}
	})
	mux.HandleFunc("GET /losing", func(w http.ResponseWriter, r *http.Request) {
		replies, err := strconv.Atoi(r.FormValue("replies"))
		if err != nil {
			t.Errorf("losing: %v", err)
		}
		fmt.Fprint(w, newLosing(t, mailgate, replies).URL)
	})
	return serve(t, mux)
}
