package rulefile

import (
	"errors"
	"fmt"
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
func (t denyText) read(r *reader) error {
	if err := r.checkName(t.Name); err != nil {
		return err
	}
	if r.index(t.Name) >= 0 {
		return refuse("name", "a rule has this name")
	}
	denial, err := t.Names.read(r, func(by rules.By, text string) (string, error) { return r.denied(by, text, t.Force) })
	denial.Name, denial.Shadow = t.Name, t.Shadow
	r.Denials = append(r.Denials, denial)
	return err
}

// denied reads a name of a denial. It refuses what would deny all visitors or, unless that is forced, the operator.
func (d Defaults) denied(by rules.By, text string, force bool) (string, error) {
	name, err := d.name(by, text)
	switch {
	case err != nil:
	case by == rules.ByClientIP && strings.HasSuffix(name, "/0"):
		err = fmt.Errorf("%s is every visitor", name)
	case (by == rules.ByMailbox || by == rules.ByDomain) && !force && d.ofSender(name):
		err = errors.New("it denies the domain of MAILGATE_FROM; if that is meant, add force: true")
	}
	return name, err
}

// ofSender reports whether a domain, or the pattern of a whole one, has the operator's mailbox.
func (d Defaults) ofSender(one string) bool {
	_, own, _ := strings.Cut(d.Sender, "@")
	if local, domain, pattern := strings.Cut(one, "@"); pattern {
		return strings.Trim(local, "*") == "" && domain == own
	}
	return own == one || strings.HasSuffix(own, "."+one)
}
