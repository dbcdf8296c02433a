package web_test

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/api/web"
)

// The pages load nothing from elsewhere and run no inline script or style, and what
// they name is there.
func TestSelfContained(t *testing.T) {
	elsewhere := regexp.MustCompile(`(?i)(https?:)?//[a-z0-9]+\.[a-z]`)
	inline := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|javascript:|<script(>|\s[^>]*>[^<])`)
	named := regexp.MustCompile(`(?:href|src)="/(?:web|admin/console)/([^"]+)"|from "\./([^"]+)"`)
	files := web.FS()
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		// A namespace is a name, not an address.
		page := strings.ReplaceAll(string(text), `"http://www.w3.org/2000/svg"`, "")
		if found := elsewhere.FindString(page); found != "" {
			t.Errorf("%s names %s", path, found)
		}
		if found := inline.FindString(page); found != "" && strings.HasSuffix(path, ".html") {
			t.Errorf("%s has %q inside", path, found)
		}
		for _, found := range named.FindAllStringSubmatch(page, -1) {
			if _, err := fs.Stat(files, found[1]+found[2]); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Every element that a script looks up by its id is in the pages that load it.
func TestScriptsFindTheirElements(t *testing.T) {
	looked := regexp.MustCompile(`\bat\("([^"]+)"\)|getElementById\("([^"]+)"\)`)
	for page, scripts := range map[string][]string{
		"index.html":   {"signup.js", "verdict.js", "ask.js"},
		"inbox.html":   {"inbox.js", "ask.js"},
		"console.html": {"console.js", "console_ask.js", "console_lanes.js", "console_mailbox.js", "console_figures.js", "console_trial.js"},
	} {
		html, err := fs.ReadFile(web.FS(), page)
		if err != nil {
			t.Fatal(err)
		}
		for _, script := range scripts {
			text, err := fs.ReadFile(web.FS(), script)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range looked.FindAllStringSubmatch(string(text), -1) {
				if id := found[1] + found[2]; !strings.Contains(string(html), `id="`+id+`"`) {
					t.Errorf("%s looks for #%s, which %s has not", script, id, page)
				}
			}
		}
	}
}
