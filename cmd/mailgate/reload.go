package main

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mailgate/mailgate/rules/rulefile"
)

// reload reads the content again and puts it in force for requests that have not begun:
// all of it, or none where anything in it cannot be right.
func (p *program) reload() {
	next, err := readContent(p.settings)
	if err == nil {
		err = p.putInForce(next)
	}
	if err != nil {
		p.reloads.failed.Inc()
		p.reloads.right.Set(0)
		p.log.Error("nothing was reloaded, everything is as it was", "error", err)
		return
	}
	p.reloads.done.Inc()
	p.reloads.right.Set(1)
	p.reloads.last.SetToCurrentTime()
}

// putInForce replaces the content and says what is different.
func (p *program) putInForce(next content) error {
	live, err := next.live(p.history)
	if err != nil {
		return err
	}
	p.server.Reload(live)
	before := p.content
	p.content = next
	p.reloads.inForce(before.rules, next.rules)
	p.tellChanges(before, next)
	p.warnOfRules()
	return nil
}

// tellChanges logs what is different. That a rule has begun anew is a warning: for as long
// as its window what it would have refused is admitted.
func (p *program) tellChanges(before, next content) {
	changes := rulefile.Compare(before.rules, next.rules)
	level := slog.LevelInfo
	if len(changes.BegunAnew) > 0 {
		level = slog.LevelWarn
	}
	p.log.Log(context.Background(), level, "reloaded",
		"rules_added", strings.Join(changes.Added, ", "),
		"rules_removed", strings.Join(changes.Removed, ", "),
		"rules_changed", strings.Join(changes.Changed, ", "),
		"rules_begun_anew", strings.Join(changes.BegunAnew, ", "),
		"rules", inAWord(changes.None()),
		"templates", inAWord(before.composer.Digest() == next.composer.Digest()),
		"rules_digest", next.rules.Digest())
}

func inAWord(asBefore bool) string {
	if asBefore {
		return "unchanged"
	}
	return "changed"
}

// warnOfRules is loud where the rule is off that everything here is about, and says what
// in the rules can only be a mistake.
func (p *program) warnOfRules() {
	for _, u := range unknownKeys(p.content.rules, p.settings) {
		p.log.Warn("a rule exempts api keys that are not set", "rule", u.rule, "api_keys", strings.Join(u.keys, ", "))
	}
	if p.content.rules.Mailbox().Shadow {
		p.log.Warn("THE RULE MAILBOX IS IN SHADOW: it counts and refuses nothing, so any mailbox can be sent any number of mails")
	}
}

// reloads are the metrics of reloading.
type reloads struct {
	done, failed prometheus.Counter
	right        prometheus.Gauge
	last         prometheus.Gauge
	info         *prometheus.GaugeVec
}

// newReloads registers them. The start counts as the first success, but not as a reload.
func newReloads(registry *prometheus.Registry, first rulefile.File) reloads {
	total := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mailgate_reloads_total",
		Help: "Times the rules and templates were read again on SIGHUP, by result: done, or failed and all left as it was.",
	}, []string{"result"})
	r := reloads{
		done: total.WithLabelValues("done"), failed: total.WithLabelValues("failed"),
		right: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "mailgate_reload_last_successful",
			Help: "0 while the files that were last read cannot be right: the next start would fail by them.",
		}),
		last: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "mailgate_reload_last_success_timestamp_seconds",
			Help: "When the rules and templates in force were read.",
		}),
		info: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mailgate_rules_info",
			Help: "1, with the digest of the rules in force: processes with one digest go by the same rules.",
		}, []string{"digest"}),
	}
	registry.MustRegister(total, r.right, r.last, r.info)
	r.right.Set(1)
	r.info.WithLabelValues(first.Digest()).Set(1)
	r.last.Set(float64(time.Now().UnixMilli()) / 1000)
	return r
}

// inForce has the digest of the next rules in place of that of those before.
func (r reloads) inForce(before, next rulefile.File) {
	r.info.WithLabelValues(next.Digest()).Set(1)
	if before.Digest() != next.Digest() {
		r.info.DeleteLabelValues(before.Digest())
	}
}
