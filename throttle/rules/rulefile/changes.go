package rulefile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// Changes are the names of what differs between two files. An action is named "action" and
// its name.
type Changes struct {
	Added, Removed, Changed []string
	// Restarted are those of Changed whose records no longer count: they count by something
	// else, by another algorithm, or in windows or parts of another length.
	Restarted []string
}

// None reports whether the files mean the same.
func (c Changes) None() bool { return len(c.Added)+len(c.Removed)+len(c.Changed) == 0 }

// Compare reports what differs in the later file.
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
		case was.String() == now[name].String():
			continue
		}
		c.Changed = append(c.Changed, name)
		if was.By != now[name].By || was.Algorithm.Form() != now[name].Algorithm.Form() {
			c.Restarted = append(c.Restarted, name)
		}
	}
	return c
}

// Names returns those of all rules and actions, in their order.
func (f File) Names() (all []string) {
	for _, r := range f.Rules {
		all = append(all, r.Name)
	}
	for _, a := range f.Actions {
		all = append(all, "action "+a.Name)
	}
	return all
}

// Digest returns ten characters that are equal for files with the same meaning, to show whether
// several processes use one file.
func (f File) Digest() string {
	whole := sha256.New()
	all := f.byName()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(whole, "%q %s\n", name, all[name])
	}
	return hex.EncodeToString(whole.Sum(nil)[:5])
}

// String returns the rule in canonical form: rules with the same meaning are equal.
func (r Rule) String() string {
	return fmt.Sprintf("%s by %s: %s, keeps %d, shadow %t, exempt %q, only %q", r.Name, r.By, r.Algorithm, r.KeepForFirstSends, r.Shadow,
		r.Exempt, r.Only)
}

// byName has an action as a rule that counts by nothing.
func (f File) byName() map[string]Rule {
	all := map[string]Rule{}
	for _, r := range f.Rules {
		all[r.Name] = r
	}
	for _, a := range f.Actions {
		all["action "+a.Name] = Rule{Name: a.Name, Algorithm: a.Algorithm}
	}
	return all
}
