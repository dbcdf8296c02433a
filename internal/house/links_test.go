package house_test

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	links   = regexp.MustCompile(`(?:\]\(|src(?:set)?=")([^)"\s]+)[)"]`)
	named   = regexp.MustCompile(`docs/[\w.-]+(?:#[\w-]+)?`) // in alerts, relative to the root
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

func TestLinks_PagesAndAlerts_LeadSomewhere(t *testing.T) {
	all, checked := files(t, ".md", ".yaml"), map[string]int{}
	for file, text := range all {
		for _, link := range linksOf(file, text) {
			checked[file]++
			if !leads(all, file, link) {
				t.Errorf("%s: %s leads nowhere", file, link)
			}
		}
	}
	for _, page := range []string{"README.md", "docs/runbook.md", "deploy/chart/alerts.yaml"} {
		if checked[page] == 0 {
			t.Errorf("%s has no link, so nothing was checked in it", page)
		}
	}
}

// TestPages_NamedTests_Exist checks that the tests that pages name exist.
func TestPages_NamedTests_Exist(t *testing.T) {
	written := map[string]bool{}
	for _, text := range files(t, "_test.go") {
		for _, test := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllStringSubmatch(text, -1) {
			written[test[1]] = true
		}
	}
	asked := 0
	for page, text := range files(t, ".md") {
		for _, test := range regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)`").FindAllStringSubmatch(text, -1) {
			if asked++; !written[test[1]] {
				t.Errorf("%s: there is no %s", page, test[1])
			}
		}
	}
	if asked == 0 {
		t.Error("no page names a test")
	}
}

// A message that the runbook quotes is one of the program's; others are those of other programs.
func TestRunbook_Messages_AreThePrograms(t *testing.T) {
	program := program(t)
	others := []string{"OOM command not allowed", "failed to verify certificate", "no such host", "too many open files", "systemctl reload mailgate", "systemctl status mailgate"}
	sentence, checked := regexp.MustCompile("^[A-Za-z]+[,;]?( [A-Za-z']+[,;:]?){2,}$"), 0
	for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(files(t, ".md")["docs/runbook.md"], -1) {
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

// The functions on the stacks and walks of the architecture exist.
func TestArchitecture_Functions_Exist(t *testing.T) {
	program, page := program(t), files(t, ".md")["docs/architecture.md"]
	named := regexp.MustCompile(`\b[a-z]+\.(\w+)\.(\w+)\s`).FindAllStringSubmatch(page, -1)
	for _, walk := range regexp.MustCompile(`(?m)^.*→.*$`).FindAllString(page, -1) {
		named = append(named, regexp.MustCompile("`(?:(\\w+)\\.)?(\\w+)`").FindAllStringSubmatch(walk, -1)...)
	}
	for _, f := range named {
		receiver := `(\((\w+ )?\*?` + f[1] + `\) )`
		if f[1] == "" {
			receiver = `(\(.*?\) )?`
		}
		if !regexp.MustCompile(`func ` + receiver + f[2] + `\(`).MatchString(program) {
			t.Errorf("there is no %s", f[0])
		}
	}
	if len(named) < 40 {
		t.Errorf("only %d functions were found", len(named))
	}
}

// The pages for contributors name files that exist.
func TestRecipes_NamedFiles_Exist(t *testing.T) {
	pages, checked := files(t, ".md"), 0
	for _, page := range []string{"docs/architecture.md", "CONTRIBUTING.md"} {
		for _, file := range regexp.MustCompile("`([\\w-]+(?:/[\\w-]+)+\\.(?:go|md|yaml|json))`").FindAllStringSubmatch(pages[page], -1) {
			checked++
			if _, err := os.Stat(file[1]); err != nil {
				t.Errorf("%s: there is no %s", page, file[1])
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d files were found", checked)
	}
}

// program is the text of all files but tests.
func program(t *testing.T) string {
	var all strings.Builder
	for file, text := range files(t, ".go") {
		if !strings.HasSuffix(file, "_test.go") {
			all.WriteString(text)
		}
	}
	return all.String()
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
func leads(all map[string]string, file, link string) bool {
	to, at, inside := strings.Cut(link, "#")
	switch {
	case to == "":
		to = file
	case path.Ext(file) == ".md":
		to = path.Join(path.Dir(file), to)
	}
	_, err := os.Stat(to)
	return err == nil && (!inside || headings(all[to])[at])
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
