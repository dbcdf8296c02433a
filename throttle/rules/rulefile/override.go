package rulefile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// overrideText is an override, as it is written.
type overrideText struct {
	Rule    string    `yaml:"rule"`
	Names   namesText `yaml:",inline"`
	Limit   string    `yaml:"limit"`
	Burst   *whole    `yaml:"burst"`
	Queue   *whole    `yaml:"queue"`
	Comment string    `yaml:"comment"`
	Shadow  bool      `yaml:"shadow"`
}

const maxComment = 200

// override reads the overrides into their rules. With an error it says which one is wrong.
func (f *File) override(all []overrideText, d Defaults) (at int, err error) {
	seen := map[string]bool{}
	for _, r := range f.Rules {
		for _, c := range r.Cases {
			_ = once(seen, r.Name, c) // what is exempt
		}
	}
	for i, t := range all {
		n := f.index(t.Rule)
		if n < 0 {
			return i, refuse("rule", "no rule has this name")
		}
		c, err := t.read(d, f, f.Rules[n])
		if err == nil {
			err = once(seen, t.Rule, c)
		}
		if err != nil {
			return i, err
		}
		f.Rules[n].Cases = append(f.Rules[n].Cases, c)
	}
	return 0, nil
}

func (t overrideText) read(d Defaults, f *File, of rules.Rule) (c rules.Case, err error) {
	if c, err = t.Names.read(d, f, d.name); err != nil {
		return c, err
	}
	c.Comment, c.Shadow = t.Comment, t.Shadow
	switch err := of.By.CheckLimit(c.Some); {
	case err != nil:
		return c, wrongIn("", err)
	case of.Resends != nil:
		return c, refuse("rule", "this rule keeps sends for first emails and has no other limits")
	case len(t.Comment) > maxComment || strings.ContainsFunc(t.Comment, func(r rune) bool { return !unicode.IsGraphic(r) }):
		return c, refuse("comment", "it is one line of visible characters, of up to %d bytes", maxComment)
	}
	if c.Limit, err = t.algorithm(d, f.written[t.Rule], of); err != nil {
		return c, err
	}
	if of.Name == rules.MailboxRule && t.Comment == "" && loosens(c.Limit, of.Limiter.Algorithm) {
		return c, refuse("", "it admits more than the mailbox's own limits; add a comment that says why")
	}
	return c, nil
}

// zero finds a limit of 0, which no algorithm has.
var zero = regexp.MustCompile(`= *0+ */`)

// algorithm returns that of the rule with this limit. What else is written of it is in c.
func (t overrideText) algorithm(d Defaults, c count, of rules.Rule) (throttle.Algorithm, error) {
	c.Limit, c.Burst = t.Limit, t.Burst
	if t.Queue != nil {
		c.Queue = t.Queue
	}
	if zero.MatchString(t.Limit) {
		return nil, refuse("limit", "0 admits nothing; name who gets no email in deny")
	}
	a, err := c.build(0)
	if err == nil {
		err = checkDelay(a, d.SendDeadline)
	}
	switch {
	case err != nil:
		return nil, err
	case of.Budget != nil && (a.Window() != of.Limiter.Algorithm.Window() || strings.Contains(c.Limit, ",")):
		return nil, refuse("limit", "with counts: %s it is one limit, with the window of the rule", unverified)
	case a.Form() != of.Limiter.Algorithm.Form():
		return nil, refuse("limit", "it needs the window of the rule, whose records it counts on")
	}
	return a, nil
}

// loosens reports whether a policy may admit what the mailbox's own refuses.
func loosens(a, own throttle.Algorithm) bool {
	other, ok := a.(throttle.Policy)
	if !ok {
		return false
	}
	return slices.ContainsFunc(own.(throttle.Policy).Tiers(), func(tier throttle.Tier) bool {
		return !slices.ContainsFunc(other.Tiers(), func(o throttle.Tier) bool { return o.Window >= tier.Window && o.Limit <= tier.Limit })
	})
}

// once refuses a second case of a rule for the same, as neither name is the more exact one. A shadow is beside others.
func once(seen map[string]bool, rule string, c rules.Case) error {
	for by, names := range c.Some {
		for _, name := range names {
			one := fmt.Sprint(rule, c.Shadow, by, name.Text)
			if seen[one] {
				return refuse("", "another override of the rule, or its exempt, is for the same")
			}
			seen[one] = true
		}
	}
	return nil
}
