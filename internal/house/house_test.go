// Package house_test holds rules for the whole tree: its packages and its pages.
package house_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// levels are those of packages and of what is below them in the tree; all others are 0. A package
// imports packages of its own level and of lower ones.
var levels = map[string]int{"cmd": 4, "api": 3, "submission": 3, "hooks": 3, "delivery": 2, "throttle/rules": 1, "internal/report": 1, "internal/events": 1, "internal/notme": 1, "internal/ledger": 2, "internal/nodes": 2, "internal/verify": 1, "internal/idempotency": 1, "suppression": 1, "mailer": 1}

// edges are the only packages that may import a library.
var edges = map[string][]string{
	"github.com/gofiber/fiber":       {"api"},
	"github.com/valyala/fasthttp":    {"api"},
	"github.com/redis/go-redis":      {"throttle/cluster", "internal/redisx", "internal/keyed", "internal/nodes", "suppression", "internal/prober", "internal/redistest", "cmd/mailgate"},
	"github.com/dgraph-io/ristretto": {"cache"},
	"zombiezen.com/go/sqlite":        {"cache"},
	"go.opentelemetry.io":            {"internal/trace"},
	"github.com/emersion/go-smtp":    {"mailer"},
	"github.com/jordan-wright/email": {"mailer/message"},
	"github.com/yuin/goldmark":       {"api/web"},
}

// Tests may import anything, and bench, a module of its own, compares libraries.
func TestImports_EveryPackage_KeepToTheRules(t *testing.T) {
	unused := maps.Clone(edges)
	for path, text := range files(t, ".go") {
		if under(path, "bench") || strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		for _, spec := range file.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			if ours, ok := strings.CutPrefix(imported, "github.com/mailgate/mailgate/"); ok && level(ours) > level(dir) {
				t.Errorf("%s imports %s, which is above it", path, ours)
			}
			if dir == "throttle" && strings.Contains(imported, ".") {
				t.Errorf("%s imports %s; throttle uses the standard library only", path, imported)
			}
			maps.DeleteFunc(unused, func(library string, _ []string) bool { return under(imported, library) })
			for library, owners := range edges {
				if under(imported, library) && !under(dir, owners...) {
					t.Errorf("%s imports %s, which belongs in %q", path, imported, owners)
				}
			}
		}
	}
	if len(unused) > 0 {
		t.Errorf("nothing imports the libraries of %v", unused)
	}
}

// The picture of the README has each package in the box of its level.
func TestReadme_Picture_HasTheLevels(t *testing.T) {
	_, picture, _ := strings.Cut(files(t, ".md")["README.md"], "```mermaid")
	for i, box := range strings.Split(picture, "subgraph L")[1:] {
		for _, label := range regexp.MustCompile(`<br>(.*)"\]`).FindAllStringSubmatch(box, -1) {
			for _, dir := range strings.Split(label[1], ", ") {
				if _, err := os.Stat(dir); err != nil || level(dir) != 3-i {
					t.Errorf("%s is not a package of level %d", dir, 3-i)
				}
			}
		}
		if i == 3 {
			return
		}
	}
	t.Error("there are not four levels")
}

// files returns the texts of the files in the tree whose names end so, by their paths.
func files(t *testing.T, ends ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case entry.IsDir() && path != "." && (strings.HasPrefix(name, ".") || name == "node_modules"):
			return fs.SkipDir
		case err != nil || entry.IsDir() || !slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(name, end) }):
			return err
		}
		text, err := os.ReadFile(path)
		all[filepath.ToSlash(path)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func level(dir string) int {
	for top, n := range levels {
		if under(dir, top) {
			return n
		}
	}
	return 0
}

// under reports whether a path is one of the folders or lies below one.
func under(path string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") })
}
