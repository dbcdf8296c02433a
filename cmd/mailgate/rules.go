package main

import (
	"errors"
	"fmt"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/mailer"
	"github.com/mailgate/mailgate/rules"
	"github.com/mailgate/mailgate/rules/rulefile"
	"github.com/mailgate/mailgate/strictyaml"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// readRules reads the rules file, or returns the built-in rules if none is set.
func readRules(s *config.Config) (rulefile.File, error) {
	identity, err := newIdentity(s)
	if err != nil {
		return rulefile.File{}, err
	}
	d := rulefile.Defaults{
		Tiers:        s.Tiers,
		SendDeadline: sendDeadline.Milliseconds(),
		Mailbox: func(text string) (string, error) {
			address, err := mailer.ParseAddress(text, identity)
			return address.Key(), err
		},
	}
	if s.Given("tiers") {
		d.TiersSetBy = s.Place("tiers")
	}
	if s.Rules == "" {
		return rulefile.Default(d)
	}
	file, err := rulefile.Read(s.Rules, d)
	var wrong *strictyaml.Error
	switch {
	case errors.As(err, &wrong):
		return file, &config.Error{Place: wrong.Place.String(), Problem: wrong.Problem}
	case err != nil:
		return file, s.Complain("rules", err.Error())
	}
	return file, nil
}

func newIdentity(s *config.Config) (mailer.Identity, error) {
	identity, err := mailer.NewIdentity(s.Fold)
	if err != nil {
		return identity, fmt.Errorf("preparing the rules for addresses: %w", err)
	}
	return identity, nil
}

// ruleSet makes the limiters of the rules. A rule keeps the counts of one with the same name
// and "by", if its algorithm can read them.
func (h history) ruleSet(file rulefile.File) (*rules.Set, error) {
	var all []rules.Rule
	for _, r := range file.Rules {
		_, queues := r.Meter.(meter.LeakyBucket)
		rule := rules.Rule{Name: r.Name, By: r.By, Queues: queues, Shadow: r.Shadow, Exempt: r.Exempt}
		if r.Resends != nil { // first: what an outage leaves is recorded through the other
			rule.Resends = h.meter(recordsOf(r), r.Resends)
		}
		if r.Name == rules.MailboxRule {
			rule.Limiter = h.mailbox(r.Tiers)
		} else {
			rule.Limiter = h.limiter(recordsOf(r), r.Count)
		}
		all = append(all, rule)
	}
	return rules.New(rules.Options{Remote: h.remote}, all...)
}

// recordsOf names the records of a rule. It has the "by", so that a rule which changes that
// starts from zero.
func recordsOf(r rulefile.Rule) string { return "rule-" + r.Name + "-" + string(r.By) }

// actions are the limiters of the actions, by name. An action and a rule of one name share
// nothing.
func (h history) actions(file rulefile.File) map[string]throttle.Limiter {
	all := map[string]throttle.Limiter{}
	for _, a := range file.Actions {
		all[a.Name] = h.limiter("action-"+a.Name, a.Count)
	}
	return all
}

func (h history) limiter(name string, count rulefile.Count) throttle.Limiter {
	if count.Meter != nil {
		return h.meter(name, count.Meter)
	}
	return h.tiers(name, count.Tiers)
}
