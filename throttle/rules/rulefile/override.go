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

// read reads an override into its rule.
func (t overrideText) read(r *reader) error {
	n := r.index(t.Rule)
	if n < 0 {
		return refuse("rule", "no rule has this name")
	}
	of := &r.Rules[n]
	c, err := t.Names.read(r, r.name)
	if err != nil {
		return err
	}
	c.Comment, c.Shadow = t.Comment, t.Shadow
	switch err := of.By.CheckLimit(c.Some); {
	case err != nil:
		return err
	case of.Resends != nil:
		return refuse("rule", "this rule keeps sends for first emails and has no other limits")
	case len(t.Comment) > maxComment || strings.ContainsFunc(t.Comment, func(r rune) bool { return !unicode.IsGraphic(r) }):
		return refuse("comment", "it is one line of visible characters, of up to %d bytes", maxComment)
	}
	if c.Limit, err = t.algorithm(r, of); err != nil {
		return err
	}
	if of.Name == rules.MailboxRule && t.Comment == "" && loosens(c.Limit, of.Limiter.Algorithm) {
		return refuse("", "it admits more than the mailbox's own limits; add a comment that says why")
	}
	of.Cases = append(of.Cases, c)
	return r.once(t.Rule, c)
}

// zero finds a limit of 0, which no algorithm has.
var zero = regexp.MustCompile(`= *0+ */`)

// algorithm returns that of the rule with this limit.
func (t overrideText) algorithm(r *reader, of *rules.Rule) (throttle.Algorithm, error) {
	c := r.written[t.Rule]
	c.Limit, c.Burst = t.Limit, t.Burst
	if t.Queue != nil {
		c.Queue = t.Queue
	}
	if zero.MatchString(t.Limit) {
		return nil, refuse("limit", "0 admits nothing; name who gets no email in deny")
	}
	a, err := c.build(0)
	if err == nil {
		err = checkDelay(a, r.SendDeadline)
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
func (r *reader) once(rule string, c rules.Case) error {
	for by, names := range c.Some {
		for _, name := range names {
			one := fmt.Sprint(rule, c.Shadow, by, name.Text)
			if r.cases[one] {
				return refuse("", "another override of the rule, or its exempt, is for the same")
			}
			r.cases[one] = true
		}
	}
	return nil
}
