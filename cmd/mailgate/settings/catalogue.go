package settings

import (
	"reflect"
	"strings"
)

// A Setting is what can be known of a setting without its value.
type Setting struct {
	Name, Default, Help string
	Group               string // the heading it stands under
	Secret              bool
	Switch              bool // true or false, so a flag needs no value
	field               int
}

// Env is its name in the environment.
func (s Setting) Env() string { return envName(s.Name) }

const prefix = "MAILGATE_"

func envName(name string) string  { return prefix + strings.ToUpper(name) }
func flagName(name string) string { return strings.ReplaceAll(name, "_", "-") }

// Catalogue is every setting, in the order in which to show them.
func Catalogue() (all []Setting) {
	group := ""
	whole := reflect.TypeFor[Settings]()
	for i := range whole.NumField() {
		field := whole.Field(i)
		name, ok := field.Tag.Lookup("name")
		if !ok {
			continue
		}
		if heading := field.Tag.Get("group"); heading != "" {
			group = heading
		}
		all = append(all, Setting{
			Name: name, Default: field.Tag.Get("default"), Help: field.Tag.Get("help"), Group: group,
			Secret: field.Tag.Get("secret") != "", Switch: field.Type.Kind() == reflect.Bool, field: i,
		})
	}
	return all
}

// A key is one name that may be given: a setting's own, or that of the file with a
// secret in it.
type key struct {
	setting Setting
	inFile  bool
}

// keys finds the keys by their names in one of the places; spell turns a setting's
// name into the name there.
func keys(spell func(string) string) map[string]key {
	all := map[string]key{}
	for _, s := range Catalogue() {
		all[spell(s.Name)] = key{setting: s}
		if s.Secret {
			all[spell(s.Name+"_file")] = key{setting: s, inFile: true}
		}
	}
	return all
}
