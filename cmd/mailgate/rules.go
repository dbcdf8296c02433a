package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/internal/yamlfile"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/throttle/rules/rulefile"
)

// readRules reads the rules file, or returns the built-in rules if none is set.
func readRules(c *config.Config, identity address.Identity) (rulefile.File, error) {
	d := rulefile.Defaults{
		Tiers:        c.Tiers,
		TiersSetBy:   c.Where("tiers"),
		SendDeadline: sendDeadline.Milliseconds(),
		Mailbox: func(text string) (string, error) {
			parsed, err := address.Parse(text, identity)
			return parsed.Key(), err
		},
	}
	if !c.From.Address.IsZero() {
		d.Sender, _ = d.Mailbox(c.From.Address.String())
	}
	if c.Rules == "" {
		return rulefile.Default(d)
	}
	file, err := rulefile.Read(c.Rules, d)
	if wrong, ok := errors.AsType[*yamlfile.Error](err); ok {
		return file, &config.Error{Problem: wrong.Error()} // it names the file and the line
	}
	if err != nil {
		return file, c.Complain("rules", err.Error())
	}
	return file, nil
}

// ruleSet gives the rules of a file their records. A rule keeps the counts of one with the same name
// and "by", if its algorithm can read them.
func (s *store) ruleSet(file rulefile.File) (*rules.Set, error) {
	all := slices.Clone(file.Rules)
	for i := range all {
		r := &all[i]
		var err error
		if r.Limiter, err = s.limiter(r.Table(), r.Limiter.Algorithm); err != nil {
			return nil, err
		}
		if b := r.Budget; b != nil && b.Percent > 0 {
			verified, err := s.limiter(r.Table()+"-verified", b.Verified.Algorithm)
			if err != nil {
				return nil, err
			}
			r.Budget = &rules.Budget{Percent: b.Percent, Verified: verified}
		}
	}
	tokens, err := s.limiter("challenge-tokens", policyOf(onceValid))
	if err != nil {
		return nil, err
	}
	return rules.New(rules.Options{Remote: s.redis != nil, Denials: file.Denials, Tokens: tokens}, all...)
}

// tryRules reads the rules as a reload would, with other tiers for mailboxes if there are any, over records in memory that go by another clock.
func (p *program) tryRules(now func() int64, tiers *throttle.Policy) (set *rules.Set, done func(), err error) {
	file, err := readRules(p.config, p.identity)
	if err != nil {
		return nil, nil, err
	}
	for i := range file.Rules {
		if r := &file.Rules[i]; r.Name == rules.MailboxRule && tiers != nil {
			r.Limiter = throttle.New(*tiers, nil)
		}
	}
	return triedSet(file, now)
}

// triedSet makes the rules of a file over records in memory.
func triedSet(file rulefile.File, now func() int64) (set *rules.Set, done func(), err error) {
	own, err := cache.Open(cache.Options{Now: now})
	if err != nil {
		return nil, nil, fmt.Errorf("trying the rules: %w", err)
	}
	set, err = (&store{own: own}).ruleSet(file)
	return set, func() { _ = own.Close() }, err
}
