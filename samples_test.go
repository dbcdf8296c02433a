package mailgate_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/need"
)

var (
	fenced  = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```")
	request = regexp.MustCompile(`(?m)^    \$ (curl .*\n(?:    [^{H\n].*\n)*)((?:    .*\n)*)`) // and the answer, from its { or HTTP on
	member  = regexp.MustCompile(`"(\w+)":|(?m)^([A-Z][\w-]+): `)
)

// pages are README.md and the pages of docs, by their names.
func pages(t *testing.T) map[string]string {
	all := files(t, ".md")
	maps.DeleteFunc(all, func(file, _ string) bool { return file != "README.md" && !strings.HasPrefix(file, "docs/") })
	return all
}

// samples are the fenced blocks of a page in one language.
func samples(page, language string) (all []string) {
	for _, block := range fenced.FindAllStringSubmatch(page, -1) {
		if block[1] == language {
			all = append(all, block[2])
		}
	}
	return all
}

func command(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = dir
	if text, err := c.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", c, err, text)
	}
}

func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// The module of the samples needs what ours needs, so that nothing is fetched.
func TestSamples_Go_CompileElsewhere(t *testing.T) {
	dir, count := t.TempDir(), 0
	for _, page := range pages(t) {
		for _, sample := range samples(page, "go") {
			count++
			write(t, fmt.Sprintf("%s/sample%d/sample.go", dir, count), sample)
		}
	}
	if count == 0 {
		t.Fatal("no page has a sample")
	}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/go.mod", strings.Replace(string(module), "module github.com/mailgate/mailgate",
		"module acme.example/sample\nrequire github.com/mailgate/mailgate v0.0.0\nreplace github.com/mailgate/mailgate => "+root, 1))
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/go.sum", string(sums))
	command(t, dir, "go", "vet", "-mod=mod", "./...")
}

// Each page's requests are made to a mailgate of their own, with the rules of that page.
func TestSamples_RequestsAndRules_Work(t *testing.T) {
	need.Program(t, "curl")
	program, count := t.TempDir()+"/mailgate", 0
	command(t, ".", "go", "build", "-o", program, "./cmd/mailgate")
	for name, page := range pages(t) {
		requests, rules := request.FindAllStringSubmatch(page, -1), strings.Join(samples(page, "yaml"), "")
		if len(requests) == 0 && rules == "" {
			continue
		}
		count++
		t.Run(name, func(t *testing.T) {
			var args []string
			if rules != "" {
				args = []string{"--rules", write(t, t.TempDir()+"/rules.yaml", rules)}
			}
			dev := startDev(t, program, args...)
			for _, sample := range requests {
				dev.try(t, strings.ReplaceAll(sample[1], "\n    ", "\n"), strings.ReplaceAll(sample[2], "    ", ""))
			}
		})
	}
	if count < 3 {
		t.Errorf("%d pages have requests or rules", count)
	}
}

type devProcess struct{ url, key, admin string }

// startDev runs mailgate dev and reads the address and the keys that it prints.
func startDev(t *testing.T, program string, args ...string) devProcess {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, append([]string{"dev", "--listen", "127.0.0.1:0"}, args...)...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Wait() }) // after the test's context has ended it
	printed := map[string]string{}
	for lines := bufio.NewScanner(out); printed["Admin"] == "" && lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) > 1 {
			printed[words[0]] = words[len(words)-1]
		}
	}
	go io.Copy(io.Discard, out)
	return devProcess{strings.TrimSuffix(printed["Console"], "/console"), printed["API"], printed["Admin"]}
}

// try makes a request as a page shows it. The answer must have the members, headers and
// status that the page shows.
func (d devProcess) try(t *testing.T, typed, shown string) {
	t.Helper()
	if strings.Contains(typed, "/verify-code") {
		typed = strings.Replace(typed, "365 526", d.codeFor(t, "bob@example.com"), 1)
	}
	c := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(typed, "http://127.0.0.1:8080", d.url))
	c.Env = append(os.Environ(), "KEY="+d.key, "ADMIN="+d.admin)
	text, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v", typed, err)
	}
	names := func(text string) (all []string) {
		for _, found := range member.FindAllStringSubmatch(text, -1) {
			all = append(all, found[1]+found[2])
		}
		return append(all, regexp.MustCompile(`HTTP/1.1 \d+`).FindString(text))
	}
	answered := names(string(text))
	for _, name := range names(shown) {
		if !slices.Contains(answered, name) {
			t.Errorf("%s\nshown is %q, and the answer is\n%s", typed, name, text)
		}
	}
}

// codeFor has a code sent and reads it in the inbox.
func (d devProcess) codeFor(t *testing.T, email string) string {
	t.Helper()
	d.try(t, fmt.Sprintf(`curl -s %s/send-code -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d '{"email":"%s"}'`, d.url, email), `{"status":`)
	var list struct{ Mails []struct{ ID int } }
	d.get(t, "/demo/mails", &list)
	if len(list.Mails) == 0 {
		t.Fatal("no email arrived")
	}
	var mail struct{ Text string }
	d.get(t, fmt.Sprintf("/demo/mails/%d", list.Mails[0].ID), &mail)
	return regexp.MustCompile(`\b\d{3} ?\d{3}\b`).FindString(mail.Text)
}

func (d devProcess) get(t *testing.T, path string, into any) {
	t.Helper()
	answer, err := http.Get(d.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}
