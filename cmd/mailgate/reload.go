package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules/rulefile"
)

// content is what SIGHUP reads again: the rules and the templates.
type content struct {
	identity address.Identity // of the mailboxes in the rules
	rules    rulefile.File
	composer *message.Composer
}

func readContent(c *config.Config) (read content, err error) {
	if read.identity, err = address.NewIdentity(c.Fold); err != nil {
		return read, fmt.Errorf("preparing the rules for addresses: %w", err)
	}
	if read.rules, err = readRules(c, read.identity); err != nil {
		return read, err
	}
	read.composer, err = newComposer(c)
	return read, err
}

// live returns the content with limiters over a store. An action and a rule of one name share nothing.
func (c content) live(s *store) (live delivery.Live, err error) {
	live.Composer, live.Actions = c.composer, map[string]*throttle.Limiter{}
	if live.Rules, err = s.ruleSet(c.rules); err != nil {
		return live, fmt.Errorf("preparing the rules: %w", err)
	}
	for _, a := range c.rules.Actions {
		if live.Actions[a.Name], err = s.limiter("action-"+a.Name, a.Algorithm); err != nil {
			return live, err
		}
	}
	return live, nil
}

// reload reads the content again and puts it in force for new requests: all of it, or none
// if anything in it is invalid.
func (p *program) reload() {
	next, err := readContent(p.config)
	var live delivery.Live
	if err == nil {
		live, err = next.live(p.store)
	}
	if err == nil {
		err = p.certificate.read(p.config)
	}
	if err != nil {
		p.reloads.successful.Set(0)
		p.log.Error("reload failed; keeping the current rules, templates and certificate", "error", err)
		return
	}
	p.delivery.Reload(live)
	before := p.content
	p.content = next
	p.reloads.inForce(next.rules)
	p.logChanges(before, next)
	p.warn(ruleNotes(p.config, next.rules))
}

// logChanges warns of rules that start from zero, as they admit what the old ones would have
// refused.
func (p *program) logChanges(before, next content) {
	changes := rulefile.Compare(before.rules, next.rules)
	level := slog.LevelInfo
	if len(changes.Restarted) > 0 {
		level = slog.LevelWarn
	}
	changed := map[bool]string{true: "unchanged", false: "changed"}
	p.log.Log(context.Background(), level, "reloaded",
		"rules_added", strings.Join(changes.Added, ", "),
		"rules_removed", strings.Join(changes.Removed, ", "),
		"rules_changed", strings.Join(changes.Changed, ", "),
		"rules_restarted", strings.Join(changes.Restarted, ", "),
		"rules", changed[changes.None()],
		"templates", changed[before.composer.Digest() == next.composer.Digest()],
		"rules_digest", next.rules.Digest())
}

// reloads are the figures of the files read last.
type reloads struct {
	successful prometheus.Gauge
	info       *prometheus.GaugeVec
}

func (r reloads) inForce(rules rulefile.File) {
	r.successful.Set(1)
	r.info.Reset()
	r.info.WithLabelValues(rules.Digest()).Set(1)
}
