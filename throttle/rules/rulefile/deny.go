package rulefile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mailgate/mailgate/throttle/rules"
)

// denyText is a denial, as it is written.
type denyText struct {
	Name   string    `yaml:"name"`
	Names  namesText `yaml:",inline"`
	Shadow bool      `yaml:"shadow"`
	Force  bool      `yaml:"force"`
}

// read reads a denial, and its file if it has one.
func (t denyText) read(d Defaults, f *File, seen map[string]bool) (denial rules.Case, err error) {
	if err := checkName(t.Name, seen); err != nil {
		return denial, err
	}
	if slices.ContainsFunc(f.Rules, func(r Rule) bool { return r.Name == t.Name }) {
		return denial, refuse("name", "a rule has this name")
	}
	denial, err = t.Names.read(d, f, d.guarded(t.Force))
	denial.Name, denial.Shadow = t.Name, t.Shadow
	return denial, err
}

// guarded are words that refuse what would deny all visitors or, unless that is forced, the operator.
func (d Defaults) guarded(force bool) words {
	w := d.words()
	guard := func(read func(string) (string, error)) func(string) (string, error) {
		return func(text string) (string, error) {
			one, err := read(text)
			if err == nil && !force && d.ofSender(one) {
				err = errors.New("it denies the domain of MAILGATE_FROM; if that is meant, add force: true")
			}
			return one, err
		}
	}
	w[rules.ByMailbox], w[rules.ByDomain] = guard(w[rules.ByMailbox]), guard(w[rules.ByDomain])
	w[rules.ByClientIP] = func(text string) (string, error) {
		name, err := networkName(text)
		if err == nil && strings.HasSuffix(name, "/0") {
			err = fmt.Errorf("%s is every visitor", name)
		}
		return name, err
	}
	return w
}

// ofSender reports whether a domain, or the pattern of a whole one, has the operator's mailbox.
func (d Defaults) ofSender(one string) bool {
	_, own, _ := strings.Cut(d.Sender, "@")
	if local, domain, pattern := strings.Cut(one, "@"); pattern {
		return strings.Trim(local, "*") == "" && domain == own
	}
	return own == one || strings.HasSuffix(own, "."+one)
}
