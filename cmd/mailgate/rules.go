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

// readRules reads the rules file, or has the built-in rules where none is set.
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

// ruleSet puts the rules on what is on record. What a rule of the same name has counted
// by the same is still there, as far as its algorithm can go on with it.
func (h history) ruleSet(file rulefile.File) (*rules.Set, error) {
	var all []rules.Rule
	for _, r := range file.Rules {
		_, queues := r.Meter.(meter.LeakyBucket)
		rule := rules.Rule{Name: r.Name, By: r.By, Queues: queues, Shadow: r.Shadow, Exempt: r.Exempt}
		if r.Resends != nil { // made first: what an outage leaves is recorded through the other
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

// recordsOf is where a rule's records are. What it counts by is in it, so that a rule which
// comes to count by something else does not meet what it counted before.
func recordsOf(r rulefile.Rule) string { return "rule-" + r.Name + "-" + string(r.By) }

// actions are the limiters of the actions, by name. An action and a rule of one name
// have nothing in common.
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
