package mailgate_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

var (
	links   = regexp.MustCompile(`(?:\]\(|src(?:set)?=")([^)"\s]+)[)"]`)
	named   = regexp.MustCompile(`docs/[\w.-]+(?:#[\w-]+)?`) // in alerts, relative to the root
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

func TestLinks_PagesAndAlerts_LeadSomewhere(t *testing.T) {
	seen, dead, err := followLinks(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range dead {
		t.Error(link)
	}
	for _, page := range []string{"README.md", "docs/runbook.md", "deploy/alerts.yaml"} {
		if !slices.Contains(seen, page) {
			t.Errorf("%s has no link, so nothing was checked in it", page)
		}
	}
}

func TestLinks_Planted_DeadOnesFound(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	seen, dead, err := followLinks(fstest.MapFS{
		"README.md": file("# Top\n[a](docs/a.md#when-it-is-503-busy) [b](docs/b.md) [c](#top) [d](https://mailgate.example/x.md#y)\n" +
			"[e](docs/a.md#top) [f](#gone) [g](deploy)\n"),
		"docs/a.md":                    file("## When it is 503, \"busy\"\n[up](../README.md#top) [gone](README.md)\n"),
		"deploy/alerts.yaml":           file("runbook: docs/a.md#when-it-is-503-busy\nrunbook: docs/a.md#nowhere\n"),
		"client/node_modules/other.md": file("[x](not-ours)\n"),
	})
	want := []string{
		"README.md: docs/b.md leads nowhere", "README.md: docs/a.md#top leads nowhere", "README.md: #gone leads nowhere",
		"deploy/alerts.yaml: docs/a.md#nowhere leads nowhere", "docs/a.md: README.md leads nowhere",
	}
	if slices.Sort(want); err != nil || fmt.Sprint(dead) != fmt.Sprint(want) || len(seen) != 3 {
		t.Errorf("%v, seen %v:\n got %q\nwant %q", err, seen, dead, want)
	}
}

// TestPages_NamedTests_Exist checks that the tests that pages name exist.
func TestPages_NamedTests_Exist(t *testing.T) {
	written, err := wordsIn(os.DirFS("."), "_test.go", `(?m)^func ((?:Test|Fuzz)\w+)\(`)
	if err != nil {
		t.Fatal(err)
	}
	asked, err := wordsIn(os.DirFS("."), ".md", "`((?:Test|Fuzz)[A-Z]\\w+)`")
	if err != nil || len(asked) == 0 {
		t.Fatalf("%v, tests that are named: %d", err, len(asked))
	}
	for name, page := range asked {
		if written[name] == "" {
			t.Errorf("%s: there is no %s", page, name)
		}
	}
}

// A message that the runbook quotes is one of the program's; others are those of other programs.
func TestRunbook_Messages_AreThePrograms(t *testing.T) {
	text, err := os.ReadFile("docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := textOf(os.DirFS("."), ".go", "_test.go")
	if err != nil {
		t.Fatal(err)
	}
	others := []string{"OOM command not allowed", "failed to verify certificate", "no such host", "too many open files", "systemctl reload mailgate", "systemctl status mailgate"}
	sentence, checked := regexp.MustCompile("^[A-Za-z]+[,;]?( [A-Za-z']+[,;:]?){2,}$"), 0
	for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(string(text), -1) {
		message := strings.Join(strings.Fields(quoted[1]), " ")
		if !sentence.MatchString(message) || slices.Contains(others, message) {
			continue
		}
		checked++
		if !strings.Contains(program, message) {
			t.Errorf("no file of the program has %q", message)
		}
	}
	if checked < 10 {
		t.Errorf("only %d messages were found", checked)
	}
}

func TestArchitecture_Functions_Exist(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := textOf(os.DirFS("."), ".go", "_test.go")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`[a-z]+\\.(\\w+)\\.(\\w+)`").FindAllStringSubmatch(string(text), -1)
	for _, f := range named {
		if !regexp.MustCompile(`func \((\w+ )?\*?` + f[1] + `\) ` + f[2] + `\(`).MatchString(program) {
			t.Errorf("there is no %s", f[0])
		}
	}
	if len(named) < 10 {
		t.Errorf("only %d functions were found", len(named))
	}
}

// textOf joins all files with the suffix but without the other one.
func textOf(tree fs.FS, suffix, without string) (string, error) {
	var all strings.Builder
	err := fs.WalkDir(tree, ".", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, suffix) || strings.HasSuffix(file, without) {
			return err
		}
		text, err := fs.ReadFile(tree, file)
		all.Write(text)
		return err
	})
	return all.String(), err
}

// wordsIn returns what the pattern captures in files with the suffix, each with its file.
func wordsIn(tree fs.FS, suffix, pattern string) (map[string]string, error) {
	words, capture := map[string]string{}, regexp.MustCompile(pattern)
	return words, fs.WalkDir(tree, ".", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, suffix) {
			return err
		}
		text, err := fs.ReadFile(tree, file)
		for _, found := range capture.FindAllSubmatch(text, -1) {
			words[string(found[1])] = file
		}
		return err
	})
}

// followLinks returns the files that have links within the tree, and the links that lead nowhere.
func followLinks(tree fs.FS) (seen, dead []string, err error) {
	err = fs.WalkDir(tree, ".", func(file string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && file != "." && (strings.HasPrefix(name, ".") || name == "node_modules"):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".md" && path.Ext(name) != ".yaml":
			return nil
		}
		text, err := fs.ReadFile(tree, file)
		for _, link := range linksOf(file, string(text)) {
			seen = append(seen, file)
			if !leads(tree, file, link) {
				dead = append(dead, fmt.Sprintf("%s: %s leads nowhere", file, link))
			}
		}
		return err
	})
	slices.Sort(dead)
	return slices.Compact(seen), dead, err
}

func linksOf(file, text string) (all []string) {
	if path.Ext(file) != ".md" {
		return named.FindAllString(text, -1)
	}
	for _, link := range links.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(link[1], "://") {
			all = append(all, link[1])
		}
	}
	return all
}

// leads reports whether the file and the heading that a link names exist.
func leads(tree fs.FS, file, link string) bool {
	to, at, inside := strings.Cut(link, "#")
	switch {
	case to == "":
		to = file
	case path.Ext(file) == ".md":
		to = path.Join(path.Dir(file), to)
	}
	if _, err := fs.Stat(tree, to); err != nil || !inside {
		return err == nil
	}
	text, err := fs.ReadFile(tree, to)
	return err == nil && headings(string(text))[at]
}

// headings returns a page's headings as links name them.
func headings(page string) map[string]bool {
	all := map[string]bool{}
	for _, line := range heading.FindAllStringSubmatch(page, -1) {
		name := regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ToLower(line[1]), "")
		all[strings.ReplaceAll(name, " ", "-")] = true
	}
	return all
}
