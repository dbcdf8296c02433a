package config

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
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
	Where   string // as [Config.Where] names it; empty for a command line
	Problem string
}

func (e *Error) Error() string {
	if e.Where == "" {
		return e.Problem
	}
	return e.Where + ": " + e.Problem
}

// Environ is the environment that the settings are read from, NAME=value each.
type Environ []string

// dev is the command that reads no settings file, and of the environment only MAILGATE_RULES.
const dev = "dev"

// devDefaults returns the defaults of dev.
func devDefaults() settings {
	return settings{
		"data-dir":   {text: Memory},
		"from":       {text: "mailgate dev <no-reply@dev.example>"},
		"log-level":  {text: "warn"},
		"log-format": {text: "text"},
	}
}

const prefix = "MAILGATE_"

func envName(flag string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Options returns kong options for the types of the settings and for their sources other than the
// command line.
func Options(environ []string) []kong.Option {
	public := published{}
	return append(decoders(public), kong.Bind(Environ(environ), public), kong.ValueFormatter(func(v *kong.Value) string {
		if v.Flag == nil || v.Flag.Group == nil && v.Name != "config" {
			return v.Help
		}
		return strings.TrimSuffix(v.Help, ".") + " (" + envName(v.Name) + ")."
	}))
}

// settings are values by flag name, each with where it comes from.
type settings map[string]setting

type setting struct {
	source string // "flag", "environment" or "file"
	where  string // as [Config.Where] has it
	text   string // of a flag, only if it is a path: kong has parsed the others
}

// BeforeResolve finds the settings in the environment and the file, and has kong parse those that
// are not flags. Kong calls it when the command line is parsed.
func (c *Config) BeforeResolve(ctx *kong.Context, environ Environ) error {
	names := map[string]bool{}
	for _, flag := range ctx.Model.Flags {
		names[flag.Name] = flag.Name != "help" && flag.Name != "version"
	}
	flags := fromCommandLine(ctx)
	variables := c.fromEnvironment(ctx, environ, names)
	file, err := fromFile(names, flags["config"], variables["config"])
	if ctx.Selected() != nil && ctx.Selected().Name == dev {
		file, err, c.unknown, c.dev = devDefaults(), nil, nil, true
		maps.DeleteFunc(variables, func(name string, _ setting) bool { return name != "rules" })
	}
	if err != nil {
		return err
	}
	c.given = settings{}
	for _, found := range []settings{file, variables, flags} {
		if err := found.readSecrets(names); err != nil {
			return err
		}
		maps.Copy(c.given, found)
	}
	for _, name := range slices.Sorted(maps.Keys(c.given)) {
		if strings.ContainsFunc(c.given[name].text, unicode.IsControl) {
			problem := "must be one line without control characters"
			if strings.HasSuffix(name, "-keys") {
				problem += ", with a comma between two keys"
			}
			return c.Complain(name, problem)
		}
	}
	ctx.AddResolver(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if text := c.given[flag.Name].text; text != "" {
			return text, nil
		}
		return nil, nil
	}))
	return nil
}

func fromCommandLine(ctx *kong.Context) settings {
	found := settings{}
	for _, path := range ctx.Path {
		if path.Flag != nil {
			text, _ := ctx.FlagValue(path.Flag).(string)
			found[path.Flag.Name] = setting{"flag", "--" + path.Flag.Name, text}
		}
	}
	return found
}

// fromEnvironment counts an empty variable as not set, as compose files leave it.
func (c *Config) fromEnvironment(ctx *kong.Context, environ []string, names map[string]bool) settings {
	found := settings{}
	for _, pair := range environ {
		variable, text, _ := strings.Cut(pair, "=")
		rest, ours := strings.CutPrefix(variable, prefix)
		name := strings.ToLower(strings.ReplaceAll(rest, "_", "-"))
		switch {
		case !ours:
		case !names[name] || variable != envName(name):
			c.unknown = append(c.unknown, unknownVariable(ctx.Kong, variable, name))
		case text != "":
			found[name] = setting{"environment", variable, text}
		}
	}
	slices.Sort(c.unknown)
	return found
}

var quotedFlag = regexp.MustCompile(`"--([a-z-]+)"`)

// unknownVariable suggests what kong suggests for the flag of this name.
func unknownVariable(k *kong.Kong, variable, name string) string {
	text := strings.Trim(strconv.Quote(variable), `"`) + ": unknown setting; "
	if trace, err := kong.Trace(k, []string{"--" + name}); err == nil && trace.Error != nil {
		if similar := quotedFlag.FindStringSubmatch(trace.Error.Error()); similar != nil {
			return text + "did you mean " + envName(similar[1]) + "?"
		}
	}
	return text + "mailgate --help lists them all"
}

const maxSecret = 64 << 10 // bytes

// fromFile reads the YAML file that the first path names: names with values, or with lists of
// values.
func fromFile(names map[string]bool, paths ...setting) (settings, error) {
	at := slices.IndexFunc(paths, func(path setting) bool { return path.text != "" })
	if at < 0 {
		return nil, nil
	}
	path := paths[at]
	var values map[string]yamlfile.Value
	_, err := yamlfile.Read(path.text, &values)
	if wrong, ok := errors.AsType[*yamlfile.Error](err); ok {
		return nil, &Error{Problem: wrong.Error()} // it names the file and the line
	}
	if err != nil {
		return nil, &Error{path.where, err.Error()}
	}
	found := settings{}
	for _, written := range slices.Sorted(maps.Keys(values)) {
		value := values[written]
		if value.Text == "" {
			continue
		}
		where := fmt.Sprintf("%s:%d", path.text, value.Line)
		if yamlfile.PlainWord(written) {
			where += ": " + written
		}
		name := strings.ReplaceAll(written, "_", "-")
		if !names[name] || name == "config" || strings.Contains(written, "-") {
			return nil, &Error{where, "unknown setting; mailgate --help lists them all"}
		}
		found[name] = setting{"file", where, value.Text}
	}
	return found, nil
}

// readSecrets replaces the paths of secrets by what the files contain.
func (s settings) readSecrets(names map[string]bool) error {
	for pathName, path := range s {
		name, isPath := strings.CutSuffix(pathName, "-file")
		if !isPath || !names[name] {
			continue
		}
		if other, twice := s[name]; twice {
			return &Error{path.where, "already set by " + other.where + "; give one of them"}
		}
		text, err := boundedfile.Read(path.text, maxSecret)
		if err != nil {
			return &Error{path.where, err.Error()}
		}
		secret := strings.TrimRight(string(text), "\r\n") // editors add it
		if secret == "" {
			return &Error{path.where, fmt.Sprintf("the file %s is empty", path.text)}
		}
		s[name] = setting{path.source, path.where, secret}
		delete(s, pathName)
	}
	return nil
}

var variable = regexp.MustCompile(prefix + `[A-Z_]+`)

// Complain returns an Error that names a setting as it was given, or else as it can be.
func (c *Config) Complain(name, problem string) error {
	if where := c.Where(name); where != "" {
		return &Error{where, problem}
	}
	if c.dev { // which has flags alone
		problem = variable.ReplaceAllStringFunc(problem, func(name string) string {
			return "--" + strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, prefix), "_", "-"))
		})
		return &Error{"--" + name, problem}
	}
	return &Error{envName(name), problem}
}

// Explain turns an error of kong's parser into an Error. A value that kong refuses is named
// as it was given.
func (c *Config) Explain(err error) error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	flag, problem, ok := strings.Cut(err.Error(), ": ")
	name, isFlag := strings.CutPrefix(flag, "--")
	switch {
	case ok && isFlag && c.Given(name):
		return c.Complain(name, problem)
	case ok && isFlag:
		return &Error{flag, problem}
	}
	return &Error{Problem: err.Error()}
}
