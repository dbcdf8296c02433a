package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/need"
	"github.com/mailgate/mailgate/internal/servertest"
)

var (
	shownRequest = regexp.MustCompile(`(?m)^    \$ (curl .*\n(?:    [^{H\n].*\n)*)((?:    .*\n)*)`) // and the answer, from its { or HTTP on
	shownRules   = regexp.MustCompile("(?ms)^```yaml\n((?:rules|deny|overrides|actions):.*?)^```")
	shownList    = regexp.MustCompile(`(?m)^ +file: (\S+)`)
	shownName    = regexp.MustCompile(`"\w+":|(?m)^[A-Z][\w-]+: |HTTP/1.1 \d+`) // of a member or a header, and the status
)

// Each page's requests are made to a mailgate of their own, with the rules of that page.
func TestSamples_RequestsAndRules_Work(t *testing.T) {
	t.Parallel()
	need.Program(t, "curl")
	files, err := filepath.Glob("../../docs/*.md")
	count := 0
	for _, file := range append(files, "../../README.md") {
		text, rules := readFile(t, file), ""
		for _, block := range shownRules.FindAllStringSubmatch(text, -1) {
			rules += block[1]
		}
		requests := shownRequest.FindAllStringSubmatch(text, -1)
		if len(requests) == 0 && rules == "" {
			continue
		}
		count++
		t.Run(filepath.Base(file), func(t *testing.T) {
			args := []string{anyPort}
			if rules != "" {
				dir := t.TempDir()
				for _, list := range shownList.FindAllStringSubmatch(rules, -1) {
					servertest.Write(t, filepath.Join(dir, list[1]), "listed.example\n")
				}
				args = append(args, "--rules="+servertest.Write(t, dir+"/rules.yaml", rules))
			}
			page, _ := startDev(t, nil, args...)
			for _, sample := range requests {
				tryRequest(t, page, strings.ReplaceAll(sample[1], "\n    ", "\n"), strings.ReplaceAll(sample[2], "    ", ""))
			}
		})
	}
	if err != nil || count < 3 {
		t.Errorf("%d pages have requests or rules, %v", count, err)
	}
}

// tryRequest makes a request as a page shows it, with the code of the last email that the page
// sent. The answer must have the members, headers and status that the page shows.
func tryRequest(t *testing.T, page client, typed, shown string) {
	t.Helper()
	if strings.Contains(typed, "/verify-code") {
		typed = strings.Replace(typed, "365 526", sixDigits.FindString(newestMail(t, page).Body.Text), 1)
	}
	text, err := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(typed, "http://127.0.0.1:8080", page.url)).Output()
	if err != nil {
		t.Fatalf("%s: %v", typed, err)
	}
	answered := shownName.FindAllString(string(text), -1)
	for _, name := range shownName.FindAllString(shown, -1) {
		if !slices.Contains(answered, name) {
			t.Errorf("%s\nshown is %q, and the answer is\n%s", typed, name, text)
		}
	}
}
