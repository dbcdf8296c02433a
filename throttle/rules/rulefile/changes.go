package rulefile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mailgate/mailgate/throttle/rules"
)

// Changes are the names of what differs between two files. A denial and an action are named with
// that word before.
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
	all := map[string]part{}
	maps.Copy(all, before.parts)
	maps.Copy(all, after.parts)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, had := before.parts[name]
		now, has := after.parts[name]
		switch {
		case !had:
			c.Added = append(c.Added, name)
		case !has:
			c.Removed = append(c.Removed, name)
		case was != now:
			c.Changed = append(c.Changed, name)
			if was.form != now.form {
				c.Restarted = append(c.Restarted, name)
			}
		}
	}
	return c
}

// Digest returns ten characters that are equal for files with the same meaning, to show whether
// several processes use one file.
func (f File) Digest() string {
	whole := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(f.parts)) {
		fmt.Fprintf(whole, "%q %x\n", name, f.parts[name].meaning)
	}
	return hex.EncodeToString(whole.Sum(nil)[:5])
}

// part is a rule, a denial or an action, to be compared: parts with the same meaning are equal.
type part struct {
	form    string // of its records
	meaning [sha256.Size]byte
}

// describe makes the parts.
func (f *File) describe() {
	f.parts = map[string]part{}
	add := func(name, form, format string, args ...any) {
		f.Names = append(f.Names, name)
		f.parts[name] = part{form, sha256.Sum256(fmt.Appendf(nil, format, args...))}
	}
	for _, r := range f.Rules {
		var cases strings.Builder
		for _, c := range r.Cases {
			fmt.Fprintf(&cases, "%q, %v, %q, shadow %t; ", c.Some, c.Limit, c.Comment, c.Shadow)
		}
		budget := rules.Budget{}
		if r.Budget != nil {
			budget = *r.Budget
		}
		add(r.Name, r.Table()+r.Limiter.Algorithm.Form(), "%s: %s, resends %v, percent %d, shadow %t, challenge %t, only %q, cases %s",
			r.Table(), r.Limiter.Algorithm, r.Resends, budget.Percent, r.Shadow, r.Challenge, r.Only, &cases)
	}
	for _, d := range f.Denials {
		add("denial "+d.Name, "", "shadow %t, %q", d.Shadow, d.Some)
	}
	for _, a := range f.Actions {
		add("action "+a.Name, a.Algorithm.Form(), "%s", a.Algorithm)
	}
}
