package rulefile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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
	for _, was := range before.sorted() {
		if after.part(was.name) == nil {
			c.Removed = append(c.Removed, was.name)
		}
	}
	for _, now := range after.sorted() {
		was := before.part(now.name)
		switch {
		case was == nil:
			c.Added = append(c.Added, now.name)
		case *was != now:
			c.Changed = append(c.Changed, now.name)
			if was.form != now.form {
				c.Restarted = append(c.Restarted, now.name)
			}
		}
	}
	return c
}

// Names returns those of all rules, denials and actions, in their order.
func (f File) Names() (all []string) {
	for _, p := range f.parts {
		all = append(all, p.name)
	}
	return all
}

// Digest returns ten characters that are equal for files with the same meaning, to show whether
// several processes use one file.
func (f File) Digest() string {
	whole := sha256.New()
	for _, p := range f.sorted() {
		fmt.Fprintf(whole, "%q %x\n", p.name, p.meaning)
	}
	return hex.EncodeToString(whole.Sum(nil)[:5])
}

// part is a rule, a denial or an action, to be compared: parts with the same meaning are equal.
type part struct {
	name, form string // form is that of its records
	meaning    [sha256.Size]byte
}

func (f File) sorted() []part {
	return slices.SortedFunc(slices.Values(f.parts), func(a, b part) int { return strings.Compare(a.name, b.name) })
}

func (f File) part(name string) *part {
	for i := range f.parts {
		if f.parts[i].name == name {
			return &f.parts[i]
		}
	}
	return nil
}

// describe makes the parts, in the order of the file.
func (f *File) describe() {
	add := func(name, form, format string, args ...any) {
		f.parts = append(f.parts, part{name, form, sha256.Sum256(fmt.Appendf(nil, format, args...))})
	}
	f.parts = nil
	for _, r := range f.Rules {
		var cases strings.Builder
		for _, c := range r.Cases {
			fmt.Fprintf(&cases, "%q, %v, %q, shadow %t; ", texts(c.Some), c.Limit, c.Comment, c.Shadow)
		}
		budget := rules.Budget{}
		if r.Budget != nil {
			budget = *r.Budget
		}
		add(r.Name, r.Table()+r.Limiter.Algorithm.Form(), "%s: %s, resends %v, percent %d, shadow %t, challenge %t, only %q, cases %s",
			r.Table(), r.Limiter.Algorithm, r.Resends, budget.Percent, r.Shadow, r.Challenge, texts(r.Only), &cases)
	}
	for _, d := range f.Denials {
		add("denial "+d.Name, "", "shadow %t, %q", d.Shadow, texts(d.Some))
	}
	for _, a := range f.Actions {
		add("action "+a.Name, a.Algorithm.Form(), "%s", a.Algorithm)
	}
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
