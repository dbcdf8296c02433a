package main

import (
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
		p.log.Error("nothing was reloaded, everything is as it was", "error", err)
		return
	}
	p.reloads.done.Inc()
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
	changes := rulefile.Compare(before.rules, next.rules)
	texts := "unchanged"
	if before.texts != next.texts {
		texts = "changed"
	}
	p.log.Info("reloaded",
		"rules_added", strings.Join(changes.Added, ", "),
		"rules_removed", strings.Join(changes.Removed, ", "),
		"rules_changed", strings.Join(changes.Changed, ", "),
		"templates", texts)
	p.warnOfShadow()
	return nil
}

// warnOfShadow is loud where the rule is off that everything here is about.
func (p *program) warnOfShadow() {
	if p.content.rules.Mailbox().Shadow {
		p.log.Warn("THE RULE MAILBOX IS IN SHADOW: it counts and refuses nothing, so any mailbox can be sent any number of mails")
	}
}

// reloads are the metrics of reloading.
type reloads struct {
	done, failed prometheus.Counter
	last         prometheus.Gauge
}

// newReloads registers them. The start counts as the first success, but not as a reload.
func newReloads(registry *prometheus.Registry) reloads {
	total := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mailgate_reloads_total",
		Help: "Times the rules and templates were read again on SIGHUP, by result: done, or failed and all left as it was.",
	}, []string{"result"})
	r := reloads{
		done: total.WithLabelValues("done"), failed: total.WithLabelValues("failed"),
		last: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "mailgate_reload_last_success_timestamp_seconds",
			Help: "When the rules and templates in force were read.",
		}),
	}
	registry.MustRegister(total, r.last)
	r.last.Set(float64(time.Now().UnixMilli()) / 1000)
	return r
}
