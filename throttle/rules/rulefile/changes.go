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
	old, now := before.parts, after.parts
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
		case was == now[name]:
			continue
		}
		c.Changed = append(c.Changed, name)
		if was.form != now[name].form {
			c.Restarted = append(c.Restarted, name)
		}
	}
	return c
}

// Names returns those of all rules, denials and actions, in their order.
func (f File) Names() (all []string) {
	for _, r := range f.Rules {
		all = append(all, r.Name)
	}
	for _, d := range f.Denials {
		all = append(all, "denial "+d.Name)
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
	for _, name := range slices.Sorted(maps.Keys(f.parts)) {
		fmt.Fprintf(whole, "%q %x\n", name, f.parts[name].meaning)
	}
	return hex.EncodeToString(whole.Sum(nil)[:5])
}

// part is a rule, a denial or an action, to be compared: parts with the same meaning are equal.
type part struct {
	meaning [sha256.Size]byte
	form    string // of its records
}

func newPart(form, format string, args ...any) part {
	whole := sha256.New()
	fmt.Fprintf(whole, format, args...)
	return part{[sha256.Size]byte(whole.Sum(nil)), form}
}

// describe returns the parts by name.
func (f File) describe() map[string]part {
	all := map[string]part{}
	for _, r := range f.Rules {
		var cases strings.Builder
		for _, c := range r.Cases {
			fmt.Fprintf(&cases, "%q, %v, %q, shadow %t; ", texts(c.Some), c.Limit, c.Comment, c.Shadow)
		}
		all[r.Name] = newPart(fmt.Sprint(r.By, r.Algorithm.Form(), r.Unverified), "%s: %s, keeps %d, unverified %t, percent %d, shadow %t, challenge %t, only %q, cases %s",
			r.By, r.Algorithm, r.KeepForFirstSends, r.Unverified, r.Percent, r.Shadow, r.Challenge, texts(r.Only), &cases)
	}
	for _, d := range f.Denials {
		all["denial "+d.Name] = newPart("", "shadow %t, %q", d.Shadow, texts(d.Some))
	}
	for _, a := range f.Actions {
		all["action "+a.Name] = newPart(a.Algorithm.Form(), "%s", a.Algorithm)
	}
	return all
}

// texts are the names of some sends without their lines, which mean nothing.
func texts(s rules.Some) map[rules.By][]string {
	all := map[rules.By][]string{}
	for by, names := range s {
		for _, name := range names {
			all[by] = append(all[by], name.Text)
		}
	}
	return all
}
