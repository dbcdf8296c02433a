package rulefile

import (
	"reflect"
	"slices"
)

// Changes are the names of what is different between two files. An action is called
// "action" and its name.
type Changes struct {
	Added, Removed, Changed []string
}

// None reports whether the files mean the same.
func (c Changes) None() bool { return len(c.Added)+len(c.Removed)+len(c.Changed) == 0 }

// Compare says what is different in the later file.
func Compare(before, after File) (c Changes) {
	old, now := before.byName(), after.byName()
	for _, name := range before.names() {
		if _, kept := now[name]; !kept {
			c.Removed = append(c.Removed, name)
		}
	}
	for _, name := range after.names() {
		was, known := old[name]
		switch {
		case !known:
			c.Added = append(c.Added, name)
		case !reflect.DeepEqual(was, now[name]):
			c.Changed = append(c.Changed, name)
		}
	}
	return c
}

func (f File) byName() map[string]any {
	all := map[string]any{}
	for _, r := range f.Rules {
		all[r.Name] = r
	}
	for _, a := range f.Actions {
		all["action "+a.Name] = a
	}
	return all
}

func (f File) names() []string {
	var all []string
	for _, r := range f.Rules {
		all = append(all, r.Name)
	}
	for _, a := range f.Actions {
		all = append(all, "action "+a.Name)
	}
	slices.Sort(all)
	return all
}
