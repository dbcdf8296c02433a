// Package mailgate_test reads the imports of the whole tree and holds the house to
// its plan: the rule in the middle, technology at the edges, imports one way.
package mailgate_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "github.com/mailgate/mailgate"

// anything in a list of imports lets a package import all of ours but test suites.
const anything = "*"

// rooms says which packages of ours each package may import. A new package gets a
// line here before anything else; a line that is hard to write is a package in the
// wrong place.
var rooms = map[string][]string{
	"throttle":                 {},
	"throttle/throttletest":    {"throttle"},
	"throttle/local":           {"throttle", "cache"},
	"throttle/cluster":         {"throttle", "internal/redisx"},
	"throttle/rules":           {"throttle", "network"},
	"throttle/rules/rulefile":  {"throttle", "throttle/rules", "internal/yamlfile", "network"},
	"cache":                    {},
	"countdown":                {"secret"},
	"delivery":                 {"idempotency", "verify", "throttle", "throttle/rules", "mailer/address", "mailer/message", "mailer/relay"},
	"idempotency":              {"internal/keyed", "secret", "throttle"},
	"verify":                   {"internal/keyed", "secret", "throttle"},
	"internal/breaker":         {},
	"internal/keyed":           {"throttle", "cache", "internal/redisx"},
	"internal/keyed/keyedtest": {"internal/keyed", "internal/redistest", "cache", "throttle"},
	"internal/mailtest":        {"servertest"},
	"internal/mailtest/fault":  {},
	"internal/prober":          {},
	"internal/redistest":       {"servertest"},
	"internal/redisx":          {"boundedfile", "internal/breaker"},
	"internal/standby":         {"throttle", "cache", "internal/keyed", "internal/prober", "internal/redisx"},
	"internal/yamlfile":        {},
	"mailer/address":           {},
	"mailer/message":           {"mailer/address"},
	"mailer/relay":             {"mailer/address", "internal/breaker", "boundedfile"},
	"mailer/sandbox":           {},
	"boundedfile":              {},
	"network":                  {},
	"secret":                   {},
	"servertest":               {},
	"client":                   {}, // what other programs import
	"api":                      {"api/gate", "api/wire", "api/web", "delivery", "throttle", "throttle/rules", "mailer/address", "mailer/message", "mailer/relay", "verify", "idempotency", "countdown", "network", "secret"},
	"api/gate":                 {"api/wire", "throttle", "network"},
	"api/wire":                 {"throttle"},
	"api/web":                  {},
	"cmd/mailgate":             {anything},
	"cmd/mailgate/config":      {"throttle", "internal/redisx", "internal/yamlfile", "mailer/message", "mailer/relay", "api", "boundedfile", "network", "secret"},
	"cmd/mailgate/demo":        {"mailer/sandbox"},
	"faults":                   {}, // the campaign is a test
	"faults/judge":             {"throttle"},
	".":                        {},
}

// plain packages import the standard library and nothing else.
var plain = []string{"throttle", "client"}

// A technology lives in few places, and in what lies below them, so that it can be
// replaced there and understood there.
var technologies = []struct {
	name    string
	imports []string // import paths, and all below them
	rooms   []string
}{
	{"Fiber", []string{"github.com/gofiber/fiber", "github.com/valyala/fasthttp"}, []string{"api"}},
	{"Redis", []string{"github.com/redis/go-redis"}, []string{"throttle/cluster", "internal", "cmd/mailgate"}},
	{"Ristretto", []string{"github.com/dgraph-io/ristretto"}, []string{"cache"}},
	{"SQLite", []string{"modernc.org/sqlite"}, []string{"cache"}},
	{"SMTP", []string{"github.com/emersion/go-smtp", "github.com/jordan-wright/email", "net/smtp"}, []string{"mailer/message", "mailer/relay", "mailer/sandbox"}},
	{"YAML", []string{"github.com/goccy/go-yaml"}, []string{"internal/yamlfile", "api", "mailer/relay"}},
	{"testing", []string{"testing"}, []string{"throttle/throttletest", "internal/redistest", "internal/mailtest", "internal/keyed/keyedtest", "servertest"}},
	{"kong", []string{"github.com/alecthomas/kong"}, []string{"cmd/mailgate"}},
}

// nameless are names that say nothing about what is inside.
var nameless = []string{"util", "utils", "common", "helper", "helpers", "type", "types", "misc"}

// A pkg is what the check needs to know of a package: where it is, its name and what
// its files import, tests left out.
type pkg struct {
	dir, name string
	imports   []string
}

func TestHouse(t *testing.T) {
	packages, err := readPackages(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, p := range packages {
		found[p.dir] = true
		for _, complaint := range p.complaints() {
			t.Error(complaint)
		}
	}
	for _, dir := range []string{"throttle", "throttle/local", "throttle/cluster", "delivery", "internal/redisx", "cache", "mailer/relay"} {
		if !found[dir] {
			t.Errorf("package %s was not found, so nothing was checked in it", dir)
		}
	}
}

// What is read: every package's own files for any system, and nothing else.
func TestHouseIsReadWhole(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	got, err := readPackages(fstest.MapFS{
		"room/a.go":             file("package room\nimport \"one\"\nimport other \"two\"\n"),
		"room/b_windows.go":     file("//go:build windows\n\npackage room\nimport (\n_ \"three\"\n. \"one\"\n)\n"),
		"room/a_test.go":        file("package room_test\nimport \"testing\"\n"),
		"room/inner/c.go":       file("package inner\n"),
		"room/script.go":        file("//go:build ignore\n\npackage main\nimport \"os\"\n"),
		"room/testdata/d.go":    file("not even Go"),
		"room/_old/e.go":        file("not even Go"),
		".hidden/f.go":          file("not even Go"),
		"other/go.mod":          file("module other\n"),
		"other/g.go":            file("package other\n"),
		"other/deeper/below.go": file("package deeper\n"),
		"README.md":             file("package readme\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []pkg{
		{"room", "main", []string{"os"}},
		{"room", "room", []string{"one", "two", "three"}},
		{"room/inner", "inner", nil},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("\n got %v\nwant %v", got, want)
	}
	if _, err := readPackages(fstest.MapFS{"room/a.go": file("no Go at all")}); err == nil {
		t.Error("a file that cannot be read was passed over")
	}
}

// The check itself: what is wrong in each planted package, and nothing in the sound.
func TestHouseFindsWhatIsPlanted(t *testing.T) {
	const ours = module + "/"
	tests := []struct {
		name    string
		planted pkg
		want    []string
	}{
		{"a sound rule", pkg{"throttle", "throttle", []string{"context", "math/rand/v2"}}, nil},
		{"a sound limiter", pkg{"throttle/local", "local", []string{ours + "throttle", ours + "cache", "golang.org/x/sys/unix"}}, nil},
		{"a sound adapter", pkg{"api", "api", []string{"github.com/gofiber/fiber/v2", ours + "throttle", ours + "verify"}}, nil},
		{"a sound program", pkg{"cmd/mailgate", "main", []string{ours + "api", ours + "throttle/cluster", "flag"}}, nil},
		{"technology below its room", pkg{"internal/redistest", "redistest", []string{"github.com/redis/go-redis/v9", "testing"}}, nil},

		{"the rule with a library", pkg{"throttle", "throttle", []string{"golang.org/x/time/rate"}},
			[]string{"throttle imports golang.org/x/time/rate, but may import the standard library only"}},
		{"the rule with a package of ours", pkg{"throttle", "throttle", []string{ours + "cache"}},
			[]string{"throttle imports cache, but may import nothing of ours", "throttle imports " + ours + "cache, but may import the standard library only"}},
		{"a call back up", pkg{"throttle/local", "local", []string{ours + "api"}},
			[]string{"throttle/local imports api, but of ours may import only cache, throttle"}},
		{"the house as a whole", pkg{"network", "network", []string{module}},
			[]string{"network imports the root package, but may import nothing of ours"}},
		{"a package below an allowed one", pkg{"api", "api", []string{ours + "throttle/cluster"}},
			[]string{"api imports throttle/cluster, but of ours may import only api/gate, api/web, api/wire, countdown, delivery, idempotency, mailer/address, mailer/message, mailer/relay, network, secret, throttle, throttle/rules, verify"}},
		{"a neighbour's name", pkg{"api", "api", []string{ours + "mailers"}},
			[]string{"api imports mailers, but of ours may import only api/gate, api/web, api/wire, countdown, delivery, idempotency, mailer/address, mailer/message, mailer/relay, network, secret, throttle, throttle/rules, verify"}},
		{"Fiber in the program", pkg{"cmd/mailgate", "main", []string{"github.com/gofiber/fiber/v2/middleware/cors"}},
			[]string{"cmd/mailgate imports github.com/gofiber/fiber/v2/middleware/cors, but Fiber stays in api"}},
		{"Redis in the adapter", pkg{"api", "api", []string{"github.com/redis/go-redis/v9"}},
			[]string{"api imports github.com/redis/go-redis/v9, but Redis stays in cmd/mailgate, internal, throttle/cluster"}},
		{"Ristretto in the limiter", pkg{"throttle/local", "local", []string{"github.com/dgraph-io/ristretto/v2"}},
			[]string{"throttle/local imports github.com/dgraph-io/ristretto/v2, but Ristretto stays in cache"}},
		{"SQLite in the limiter", pkg{"throttle/local", "local", []string{"modernc.org/sqlite"}},
			[]string{"throttle/local imports modernc.org/sqlite, but SQLite stays in cache"}},
		{"the standard library's SMTP in the adapter", pkg{"api", "api", []string{"net/smtp"}},
			[]string{"api imports net/smtp, but SMTP stays in mailer/message, mailer/relay, mailer/sandbox"}},
		{"a relay in the cache", pkg{"cache", "cache", []string{"github.com/emersion/go-smtp", "github.com/jordan-wright/email"}},
			[]string{"cache imports github.com/emersion/go-smtp, but SMTP stays in mailer/message, mailer/relay, mailer/sandbox", "cache imports github.com/jordan-wright/email, but SMTP stays in mailer/message, mailer/relay, mailer/sandbox"}},
		{"a test's tools in the program", pkg{"cmd/mailgate", "main", []string{ours + "throttle/throttletest", "testing"}},
			[]string{"cmd/mailgate imports throttle/throttletest, which is for tests alone", "cmd/mailgate imports testing, but testing stays in internal/keyed/keyedtest, internal/mailtest, internal/redistest, servertest, throttle/throttletest"}},
		{"a package without a room", pkg{"console", "console", []string{"time"}},
			[]string{"package console has no room yet: add it to rooms in house_test.go, with what it may import of ours"}},
		{"a name that says nothing", pkg{"api", "common", nil},
			[]string{"package common in api needs a name that says what it is for"}},
		{"a folder that says nothing", pkg{"cache/util", "sizes", nil},
			[]string{"package cache/util has no room yet: add it to rooms in house_test.go, with what it may import of ours", "package sizes in cache/util needs a name that says what it is for"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.planted.complaints(); !slices.Equal(got, tt.want) {
				t.Errorf("\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(tt.want, "\n     "))
			}
		})
	}
}

// complaints is what is wrong with a package, a sentence each.
func (p pkg) complaints() (all []string) {
	allowed, known := rooms[p.dir]
	if !known {
		all = append(all, fmt.Sprintf("package %s has no room yet: add it to rooms in house_test.go, with what it may import of ours", p.dir))
	}
	if slices.Contains(nameless, p.name) || slices.Contains(nameless, path.Base(p.dir)) {
		all = append(all, fmt.Sprintf("package %s in %s needs a name that says what it is for", p.name, p.dir))
	}
	for _, imported := range p.imports {
		if inner, ok := ourPackage(imported); ok && known {
			all = append(all, p.ours(inner, allowed)...)
		}
		if slices.Contains(plain, p.dir) && strings.Contains(firstElement(imported), ".") {
			all = append(all, fmt.Sprintf("%s imports %s, but may import the standard library only", p.dir, imported))
		}
		all = append(all, p.technology(imported)...)
	}
	return all
}

// ours complains about one import of a package of ours.
func (p pkg) ours(imported string, allowed []string) []string {
	if slices.Contains(allowed, anything) {
		if strings.HasSuffix(imported, "test") {
			return []string{fmt.Sprintf("%s imports %s, which is for tests alone", p.dir, imported)}
		}
		return nil
	}
	if slices.Contains(allowed, imported) {
		return nil
	}
	if imported == "." {
		imported = "the root package"
	}
	if len(allowed) == 0 {
		return []string{fmt.Sprintf("%s imports %s, but may import nothing of ours", p.dir, imported)}
	}
	return []string{fmt.Sprintf("%s imports %s, but of ours may import only %s", p.dir, imported, sentence(allowed))}
}

// technology complains about one import of a technology that lives elsewhere.
func (p pkg) technology(imported string) (all []string) {
	for _, tech := range technologies {
		if below(imported, tech.imports) && !below(p.dir, tech.rooms) {
			all = append(all, fmt.Sprintf("%s imports %s, but %s stays in %s", p.dir, imported, tech.name, sentence(tech.rooms)))
		}
	}
	return all
}

// below reports whether a path is one of the places or lies below one.
func below(where string, places []string) bool {
	return slices.ContainsFunc(places, func(place string) bool {
		return where == place || strings.HasPrefix(where, place+"/")
	})
}

func ourPackage(imported string) (dir string, ours bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

func firstElement(imported string) string {
	first, _, _ := strings.Cut(imported, "/")
	return first
}

func sentence(names []string) string {
	return strings.Join(slices.Sorted(slices.Values(names)), ", ")
}

// readPackages reads the imports of every file that is not a test, whatever system it
// is for. Modules inside this one are left out, as the go command does.
func readPackages(tree fs.FS) ([]pkg, error) {
	byName := map[string]*pkg{}
	err := fs.WalkDir(tree, ".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return enter(tree, file)
		case !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		return readFile(byName, tree, file)
	})
	var all []pkg
	for _, key := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, *byName[key])
	}
	return all, err
}

func enter(tree fs.FS, dir string) error {
	if dir == "." {
		return nil
	}
	name := path.Base(dir)
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" {
		return fs.SkipDir
	}
	if _, err := fs.Stat(tree, path.Join(dir, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func readFile(byName map[string]*pkg, tree fs.FS, file string) error {
	source, err := fs.ReadFile(tree, file)
	if err != nil {
		return err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.ImportsOnly)
	if err != nil {
		return err
	}
	dir, name := path.Dir(file), parsed.Name.Name
	p := byName[dir+" "+name]
	if p == nil {
		p = &pkg{dir: dir, name: name}
		byName[dir+" "+name] = p
	}
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if !slices.Contains(p.imports, imported) {
			p.imports = append(p.imports, imported)
		}
	}
	return nil
}
