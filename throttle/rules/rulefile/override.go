package rulefile

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// overrideText is an override, as it is written.
type overrideText struct {
	Rule    string   `yaml:"rule"`
	Some    someText `yaml:",inline"`
	File    string   `yaml:"file"`
	Limit   string   `yaml:"limit"`
	Burst   *whole   `yaml:"burst"`
	Queue   *whole   `yaml:"queue"`
	Comment string   `yaml:"comment"`
}

const maxComment = 200

// override reads the overrides into their rules. With an error it says which one is wrong.
func (f *File) override(all []overrideText, d Defaults, beside string) (at int, err error) {
	seen := map[string]bool{}
	for i, t := range all {
		n := slices.IndexFunc(f.Rules, func(r Rule) bool { return r.Name == t.Rule })
		if n < 0 {
			return i, refuse("rule", "no rule has this name")
		}
		o, err := t.read(d, beside, f, f.Rules[n])
		if err == nil {
			err = once(seen, t.Rule, o.Some)
		}
		if err != nil {
			return i, err
		}
		f.Rules[n].Overrides = append(f.Rules[n].Overrides, o)
	}
	return 0, nil
}

func (t overrideText) read(d Defaults, beside string, f *File, of Rule) (o rules.Override, err error) {
	w := d.words()
	if zero.MatchString(t.Limit) {
		w = d.guarded(false)
	}
	if o.Some, err = t.Some.read(w, ""); err != nil {
		return o, err
	}
	if t.File != "" {
		if err := f.addFile(&o.Some, relative(beside, t.File), w); err != nil {
			return o, err
		}
	}
	o.Comment = t.Comment
	switch err := of.By.CheckOverride(o.Some); {
	case err != nil:
		return o, wrongIn("", err)
	case o.Some.None():
		return o, refuse("", "it names nothing, such as a mailbox or a network")
	case of.KeepForFirstSends > 0:
		return o, refuse("rule", "this rule keeps sends for first emails and has no other limits")
	case len(t.Comment) > maxComment || strings.ContainsFunc(t.Comment, unicode.IsControl):
		return o, refuse("comment", "it is one line of up to %d bytes", maxComment)
	}
	if o.Algorithm, err = t.algorithm(d, of); err != nil {
		return o, err
	}
	if of.Name == rules.MailboxRule && t.Comment == "" && loosens(o.Algorithm, of.Algorithm) {
		return o, refuse("", "it admits more than the mailbox's own limits; add a comment that says why")
	}
	return o, nil
}

// zero finds a limit of 0, which no algorithm has.
var zero = regexp.MustCompile(`= *0+ */`)

// algorithm returns that of the rule with this limit, or nil for 0.
func (t overrideText) algorithm(d Defaults, of Rule) (throttle.Algorithm, error) {
	c := of.count
	c.Limit, c.Burst = zero.ReplaceAllString(t.Limit, "=1/"), t.Burst
	if t.Queue != nil {
		c.Queue = t.Queue
	}
	none := c.Limit != t.Limit
	if none && strings.Contains(c.Limit, ",") {
		return nil, refuse("limit", "a limit of 0 stands alone, as it denies every send")
	}
	a, err := c.build(0)
	if err == nil {
		err = checkDelay(a, d.SendDeadline)
	}
	switch {
	case err != nil:
		return nil, err
	case none:
		return nil, nil
	case of.Unverified && (a.Window() != of.Algorithm.Window() || strings.Contains(c.Limit, ",")):
		return nil, refuse("limit", "with counts: %s it is one limit, with the window of the rule", unverified)
	case a.Form() != of.Algorithm.Form():
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

// once refuses a second override of a rule for the same.
func once(seen map[string]bool, rule string, s rules.Some) error {
	names := slices.Concat(s.Mailboxes, s.Domains, s.Callers, s.Templates, s.Purposes)
	for _, p := range s.Networks {
		names = append(names, p.String())
	}
	for _, name := range names {
		if name = rule + " " + name; seen[name] {
			return refuse("", "another override of the rule is for the same")
		}
		seen[name] = true
	}
	return nil
}
