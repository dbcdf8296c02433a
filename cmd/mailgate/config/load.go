package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/alecthomas/kong"

	"github.com/mailgate/mailgate/internal/boundedfile"
	"github.com/mailgate/mailgate/internal/yamlfile"
)

// An Error is an invalid setting or command line, in one line.
type Error struct {
	Place   string // "--tiers", "MAILGATE_TIERS", "mailgate.yaml:3: tiers"; empty for a command line
	Problem string
}

func (e *Error) Error() string {
	if e.Place == "" {
		return e.Problem
	}
	return e.Place + ": " + e.Problem
}

// Environ is the environment that the settings are read from, NAME=value each.
type Environ []string

// FlagsOnly is the command that reads no settings file, and of the environment only
// MAILGATE_RULES.
const FlagsOnly = "dev"

const prefix = "MAILGATE_"

func envName(flag string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Options teach kong the types of the settings and where else than on the command line to
// find them.
func Options(environ []string) []kong.Option {
	return append(decoders(), kong.Bind(Environ(environ)), kong.ValueFormatter(func(v *kong.Value) string {
		if v.Flag == nil || v.Flag.Group == nil && v.Name != configFlag {
			return v.Help
		}
		return strings.TrimSuffix(v.Help, ".") + " (" + envName(v.Name) + ")."
	}))
}

const configFlag = "config"

// BeforeResolve is called by kong when the command line is parsed. It finds the settings that
// the environment and the file have, and has kong take those that are no flags.
func (c *Config) BeforeResolve(ctx *kong.Context, environ Environ) error {
	known := map[string]bool{}
	for _, flag := range ctx.Model.Flags {
		known[flag.Name] = flag.Name != "help"
	}
	flags := onCommandLine(ctx)
	vars := c.fromEnvironment(environ, known)
	if ctx.Selected() != nil && ctx.Selected().Name == FlagsOnly {
		c.unknown = nil
		maps.DeleteFunc(vars, func(name string, _ Origin) bool { return name != "rules" })
	}
	file, err := fromFile(known, flags[configFlag], vars[configFlag])
	if err != nil {
		return err
	}
	c.origins = map[string]Origin{}
	for _, given := range []layer{file, vars, flags} {
		if err := given.readSecrets(known); err != nil {
			return err
		}
		maps.Copy(c.origins, given)
	}
	for _, name := range slices.Sorted(maps.Keys(c.origins)) {
		if strings.ContainsFunc(c.origins[name].text, unicode.IsControl) {
			return c.Complain(name, "must be one line without control characters")
		}
	}
	ctx.AddResolver(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if text := c.origins[flag.Name].text; text != "" {
			return text, nil
		}
		return nil, nil
	}))
	return nil
}

// A layer is what one source has, by flag name.
type layer map[string]Origin

// onCommandLine is the layer of the flags. Their texts are left out, as kong has parsed them,
// but for paths.
func onCommandLine(ctx *kong.Context) layer {
	found := layer{}
	for _, path := range ctx.Path {
		if path.Flag == nil {
			continue
		}
		given := Origin{Place: "--" + path.Flag.Name, Level: Flag}
		if text, ok := ctx.FlagValue(path.Flag).(string); ok {
			given.text = text
		}
		found[path.Flag.Name] = given
	}
	return found
}

// fromEnvironment is the layer of the environment. An empty variable counts as not set, as
// compose files leave it.
func (c *Config) fromEnvironment(environ []string, known map[string]bool) layer {
	byVariable := map[string]string{}
	for name, setting := range known {
		if setting {
			byVariable[envName(name)] = name
		}
	}
	found := layer{}
	for _, pair := range environ {
		variable, text, _ := strings.Cut(pair, "=")
		name, ok := byVariable[variable]
		switch {
		case ok && text != "":
			found[name] = Origin{Place: variable, Level: Environment, text: text}
		case !ok && strings.HasPrefix(variable, prefix):
			c.unknown = append(c.unknown, unknownVariable(variable, slices.Collect(maps.Keys(byVariable))))
		}
	}
	slices.Sort(c.unknown)
	return found
}

func unknownVariable(variable string, known []string) string {
	slices.Sort(known)
	nearest := slices.MinFunc(known, func(a, b string) int { return distance(a, variable) - distance(b, variable) })
	quoted := strings.Trim(strconv.Quote(variable), `"`)
	if distance(nearest, variable) > 2 {
		return quoted + ": unknown setting; mailgate --help lists them all"
	}
	return quoted + ": unknown setting; did you mean " + nearest + "?"
}

// distance is how many letters have to be put in, taken out or replaced to make one word the
// other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

const maxFile, maxSecret = 256 << 10, 64 << 10

// fromFile is the layer of the YAML file: names with values, or with lists of values. The
// first path that is given names it.
func fromFile(known map[string]bool, paths ...Origin) (layer, error) {
	at := slices.IndexFunc(paths, func(o Origin) bool { return o.text != "" })
	if at < 0 {
		return nil, nil
	}
	path := paths[at]
	text, err := boundedfile.Read(path.text, maxFile)
	if err != nil {
		return nil, &Error{path.Place, err.Error()}
	}
	lines, err := yamlfile.Lines(path.text, text)
	if err != nil {
		return nil, &Error{Problem: err.Error()} // it names the file and the line
	}
	found := layer{}
	for _, line := range lines {
		name := strings.ReplaceAll(line.Name, "_", "-")
		if !known[name] || name == configFlag || strings.Contains(line.Name, "-") {
			return nil, &Error{line.Place, "unknown setting; mailgate --help lists them all"}
		}
		found[name] = Origin{Place: line.Place, Level: File, text: line.Value}
	}
	return found, nil
}

// readSecrets replaces paths of secrets by what the files hold.
func (l layer) readSecrets(known map[string]bool) error {
	for file, given := range l {
		name, ok := strings.CutSuffix(file, "-file")
		if !ok || !known[name] {
			continue
		}
		if other, twice := l[name]; twice {
			return &Error{given.Place, "already set by " + other.Place + "; give one of them"}
		}
		text, err := boundedfile.Read(given.text, maxSecret)
		if err != nil {
			return &Error{given.Place, err.Error()}
		}
		given.text = strings.TrimRight(string(text), "\r\n") // as editors add it
		if given.text == "" {
			return &Error{given.Place, fmt.Sprintf("the file %s is empty", l[file].text)}
		}
		l[name] = given
		delete(l, file)
	}
	return nil
}

// Complain is an Error that names a setting as it was given, or else by its variable.
func (c *Config) Complain(name, problem string) error {
	place := envName(name)
	if c.Given(name) {
		place = c.origins[name].Place
	}
	return &Error{place, problem}
}

// Explain makes an error of kong's parser an Error. A value that kong cannot take is named
// as it was given.
func (c *Config) Explain(err error) error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	if flag, problem, ok := strings.Cut(err.Error(), ": "); ok && strings.HasPrefix(flag, "--") {
		name := flag[2:]
		if c.origins == nil || !c.Given(name) {
			return &Error{flag, problem}
		}
		return c.Complain(name, problem)
	}
	return &Error{Problem: err.Error()}
}
