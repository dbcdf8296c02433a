package rulefile

import (
	"maps"
	"reflect"
	"slices"
)

// Changes are the names of what is different between two files. An action is called
// "action" and its name.
type Changes struct {
	Added, Removed, Changed []string
	// BegunAnew are those of Changed for which nothing counts any more of what is on
	// record since they last counted so, if they did: they count by something else, by another algorithm, or in windows or parts
	// of another length. A sliding-log goes on with its record, whatever its windows.
	BegunAnew []string
}

// None reports whether the files mean the same.
func (c Changes) None() bool { return len(c.Added)+len(c.Removed)+len(c.Changed) == 0 }

// Compare says what is different in the later file.
func Compare(before, after File) (c Changes) {
	old, now := before.byName(), after.byName()
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if _, kept := now[name]; !kept {
			c.Removed = append(c.Removed, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		was, known := old[name]
		switch {
		case !known:
			c.Added = append(c.Added, name)
			continue
		case reflect.DeepEqual(was, now[name]):
			continue
		}
		c.Changed = append(c.Changed, name)
		if was.By != now[name].By || !was.goesOnAs(now[name].Count) {
			c.BegunAnew = append(c.BegunAnew, name)
		}
	}
	return c
}

// goesOnAs reports whether what was counted still counts when it is counted so.
func (c Count) goesOnAs(next Count) bool {
	if c.Meter == nil || next.Meter == nil {
		return c.Meter == nil && next.Meter == nil
	}
	return c.Meter.Form() == next.Meter.Form()
}

// byName has an action as a rule that counts by nothing.
func (f File) byName() map[string]Rule {
	all := map[string]Rule{}
	for _, r := range f.Rules {
		all[r.Name] = r
	}
	for _, a := range f.Actions {
		all["action "+a.Name] = Rule{Name: a.Name, Count: a.Count}
	}
	return all
}

// Names are those of all rules and actions, in their order. An action is called "action" and its name.
func (f File) Names() []string {
	var all []string
	for _, r := range f.Rules {
		all = append(all, r.Name)
	}
	for _, a := range f.Actions {
		all = append(all, "action "+a.Name)
	}
	return all
}
