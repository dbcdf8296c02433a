package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/outage"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
	codes "github.com/mailgate/mailgate/verify/cluster"
)

// goingOn is the history in Redis, and one of this node's own to go on with while Redis is
// away. It is in a data directory only where one was asked for.
func goingOn(s *config.Config, shared history, store *redisstore.Store, first throttle.Policy, log *slog.Logger) (history, error) {
	dir := ownDir(s)
	own, err := openDisk(s, dir, first, store.Now, log)
	if err != nil {
		return history{}, err
	}
	watch, err := outage.NewWatch(outage.Options{
		Disk: own.disk, Kept: dir != cache.Memory, Shared: store.Ready, Whole: store.Whole, Now: store.Now, Log: log,
		Wrong: func(err error) bool { return errors.Is(err, redisstore.ErrReply) },
	})
	if err != nil {
		return history{}, errors.Join(fmt.Errorf("opening the history: %w", err), own.close(context.Background()))
	}
	return join(watch, shared, store, own), nil
}

// ownDir is where a node keeps its own history: alone in its data directory, and beside Redis
// there only if one was asked for.
func ownDir(s *config.Config) string {
	if s.UsesDataDir() {
		return s.DataDir
	}
	return cache.Memory
}

// join makes one history of the two.
func join(watch *outage.Watch, shared history, store *redisstore.Store, own diskHistory) history {
	return history{
		mailbox: func(p throttle.Policy) outage.Survey {
			return watch.Historian("mailbox", p.Longest(), shared.mailbox(p), own.mailbox(p))
		},
		tiers: func(name string, p throttle.Policy) throttle.Recorder {
			return watch.Limiter(name, p.Longest(), shared.tiers(name, p), own.tiers(name, p))
		},
		meter: func(name string, m meter.Meter) throttle.Recorder {
			return watch.Limiter(name+"."+m.Form(), longest(m), shared.meter(name, m), own.meter(name, m))
		},
		codes: watch.Book(codes.New(store)),
		repeats: api.Repeats{
			Answers:    watch.Keeper("answers", answerTerms, shared.repeats.Answers, own.answers),
			HandedOver: watch.Keeper("handed-over", markTerms, shared.repeats.HandedOver, own.handedOver),
		},
		remote:  true,
		watch:   watch,
		metrics: append(shared.metrics, newOutageGauges(watch.State)), patience: shared.patience,
		ready: func(ctx context.Context) error { return watch.Ready(ctx, own.ready) },
		close: func(ctx context.Context) error {
			watch.Close(ctx)
			// What is owed is safe on the disk before anybody loses patience with a Redis that hangs.
			return errors.Join(own.close(ctx), shared.close(ctx))
		},
	}
}

// longest is how long a send can count by a meter: for as long as what it fills takes to
// drain, and where windows follow each other through the next one.
func longest(m meter.Meter) int64 { return 2 * max(m.Tier().Window, m.Quota().Window) }

// outageGauges are how the node stands with Redis, read when they are asked for.
type outageGauges struct {
	state                                                 func() outage.State
	degraded, since, debts, admitted, written, unrecorded *prometheus.Desc
}

func newOutageGauges(state func() outage.State) *outageGauges {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	return &outageGauges{
		state:      state,
		degraded:   desc("mailgate_store_degraded", "1 while this node goes on without Redis, or has not yet written what it admitted meanwhile."),
		since:      desc("mailgate_store_degraded_since_timestamp_seconds", "Since when; 0 while it does not."),
		debts:      desc("mailgate_store_debts", "Steps of this node that Redis has not been told of."),
		admitted:   desc("mailgate_store_degraded_admissions_total", "What this node admitted without Redis: a send or an action counts once for each rule that it met, a guess once."),
		written:    desc("mailgate_store_written_total", "What this node admitted without Redis and has then written there."),
		unrecorded: desc("mailgate_store_unrecorded_total", "Admissions by Redis that this node could not note in its own history."),
	}
}

// Describe implements prometheus.Collector.
func (g *outageGauges) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(g, to) }

// Collect implements prometheus.Collector.
func (g *outageGauges) Collect(to chan<- prometheus.Metric) {
	s := g.state()
	degraded := 0.0
	if s.Degraded {
		degraded = 1
	}
	metric := func(of *prometheus.Desc, kind prometheus.ValueType, value float64) {
		to <- prometheus.MustNewConstMetric(of, kind, value)
	}
	metric(g.degraded, prometheus.GaugeValue, degraded)
	metric(g.since, prometheus.GaugeValue, float64(s.Since)/1000)
	metric(g.debts, prometheus.GaugeValue, float64(s.Debts))
	metric(g.admitted, prometheus.CounterValue, float64(s.Admitted))
	metric(g.written, prometheus.CounterValue, float64(s.Written))
	metric(g.unrecorded, prometheus.CounterValue, float64(s.Unnoted))
}
