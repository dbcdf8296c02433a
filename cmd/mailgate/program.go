package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/mailgate/mailgate"
	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/clock"
	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/mailer"
	keys "github.com/mailgate/mailgate/secret"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/memory"
	"github.com/mailgate/mailgate/throttle/meter"
)

// A program is everything that runs. It is the one place that knows all parts.
type program struct {
	config  *config.Config
	log     *slog.Logger
	history history
	content content // in force
	relays  *mailer.Relays
	server  *api.Server
	reloads reloads
	usable  prometheus.Gauge // whether the history can be used
	digest  string           // of the secret, where processes share a history
}

// build opens what the settings name. The caller serves the program, or abandons it.
// Requests for paths that the API does not have go to fallback, which may be nil.
func build(ctx context.Context, c *config.Config, log slog.Handler, audit io.Writer, fallback http.Handler) (*program, error) {
	p := &program{config: c, log: slog.New(log)}
	if err := p.open(ctx, newAudit(c, audit), fallback); err != nil {
		return nil, errors.Join(err, p.abandon(ctx))
	}
	return p, nil
}

func (p *program) open(ctx context.Context, audit *slog.Logger, fallback http.Handler) error {
	options, err := fixedOptions(p.config)
	if err != nil {
		return err
	}
	if err := p.openContent(ctx, &options); err != nil {
		return err
	}
	options.Metrics = prometheus.NewRegistry()
	options.Metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	p.reloads = newReloads(options.Metrics, p.content.rules)
	p.usable = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "mailgate_store_ready",
		Help: "1 while the history can be used; checked every ten seconds.",
	})
	options.Metrics.MustRegister(p.usable)
	hooks, err := api.RelayHooks(options.Metrics)
	if err != nil {
		return fmt.Errorf("preparing the metrics: %w", err)
	}
	if p.relays, err = newRelays(p.config, p.log, hooks); err != nil {
		return err
	}
	options.Sender, options.RelayStats = p.relays, p.relays.Stats
	options.Log, options.Audit = p.log, audit
	options.Fallback = fallback
	if p.server, err = api.New(options); err != nil {
		return fmt.Errorf("making the server: %w", err)
	}
	if p.digest != "" {
		options.Metrics.MustRegister(newSecretInfo(p.digest))
	}
	options.Metrics.MustRegister(p.history.metrics...)
	return nil
}

// openContent reads the rules and templates, and opens the history for them.
func (p *program) openContent(ctx context.Context, options *api.Options) (err error) {
	if p.content, err = readContent(p.config); err != nil {
		return err
	}
	if p.history, err = openHistory(ctx, p.config, p.content.rules.Mailbox().Tiers, p.log); err != nil {
		return err
	}
	if options.Secret, err = openSecret(p.config); err != nil {
		return err
	}
	if p.config.RedisURL != "" {
		if p.digest, err = keys.Digest(options.Secret); err != nil {
			return p.config.Complain("secret", err.Error())
		}
	}
	options.Codes, options.Guesses, options.Repeats = p.history.codes, p.history.guesses(p.config.Guesses), p.history.repeats
	options.Ready, options.Patience = p.history.ready, p.history.patience
	if p.history.watch != nil {
		options.DegradedSince = func() int64 { return p.history.watch.State().Since }
	}
	options.Live, err = p.content.live(p.history)
	return err
}

// fixedOptions follow from the settings alone.
func fixedOptions(c *config.Config) (o api.Options, err error) {
	if o.Identity, err = newIdentity(c); err != nil {
		return o, err
	}
	if o.APIKeys, o.AdminKeys, err = accessKeys(c); err != nil {
		return o, err
	}
	if o.Lookups, err = perSecond(c, "lookup-rate", c.LookupRate); err != nil {
		return o, err
	}
	if o.Countdowns, err = perSecond(c, "countdown-rate", c.CountdownRate); err != nil {
		return o, err
	}
	o.CodeLife = c.CodeLife.Milliseconds()
	o.TrustedProxies, o.MaxConnections = c.TrustedProxies, connectionsWithin(c, maxFiles())
	o.SendDeadline, o.StorePatience, o.DrainDelay = sendDeadline, storePatience(c), c.DrainDelay
	o.OpenAPI, o.Version = mailgate.OpenAPI, currentVersion()
	o.Now = clock.Now
	return o, nil
}

// lookupBurst is how many seconds' worth of lookups may come at once.
const lookupBurst = 4

// perSecond limits the lookups of each key or address; 0 is no limit.
func perSecond(c *config.Config, name string, rate int) (throttle.Limiter, error) {
	if rate == 0 {
		return nil, nil
	}
	bucket, err := meter.NewTokenBucket(throttle.Tier{Name: "second", Limit: rate, Window: 1000}, lookupBurst*rate)
	if err != nil {
		return nil, c.Complain(name, err.Error())
	}
	return memory.New(bucket, memory.Options{}), nil
}

// accessKeys are the keys that open the API. Where back ends need a key and operators have
// none, the operator routes are closed by a random one.
func accessKeys(c *config.Config) (forAPI, forAdmins api.Keys, err error) {
	if forAPI, err = api.ParseKeys(string(c.APIKeys)); err != nil {
		return forAPI, forAdmins, c.Complain("api-keys", err.Error())
	}
	admins := string(c.AdminKeys)
	if admins == "" && c.APIKeys != "" {
		admins = "closed:" + rand.Text()
	}
	if forAdmins, err = api.ParseKeys(admins); err != nil {
		return forAPI, forAdmins, c.Complain("admin-keys", err.Error())
	}
	return forAPI, forAdmins, nil
}

// serve answers requests until ctx ends or the listener fails, which is an error. Then it
// lets those in flight finish, within the grace, and closes everything. Each signal from
// reload reads the content again.
func (p *program) serve(ctx context.Context, listener net.Listener, reload <-chan os.Signal) error {
	if p.history.watch != nil {
		p.history.watch.Start() // not before: its end waits for Redis if records are owed
	}
	stopChecks := p.checkStore()
	served := make(chan error, 1)
	go func() {
		defer close(served)
		served <- p.server.Serve(listener)
	}()
	for {
		select {
		case err := <-served:
			p.log.Error("the listener failed", "error", err)
			return errors.Join(fmt.Errorf("serving: %w", err), p.drain(ctx, served, stopChecks))
		case <-reload:
			p.reload()
		case <-ctx.Done():
			return p.drain(ctx, served, stopChecks)
		}
	}
}

// drain finishes the requests in flight and closes the stores.
func (p *program) drain(ctx context.Context, served <-chan error, stopChecks func()) error {
	grace := p.config.ShutdownGrace
	p.notify("STOPPING=1")
	p.log.Info("draining", "grace", grace.String())
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := p.server.Shutdown(within)
	if err != nil {
		err = fmt.Errorf("requests were cut off after %s: %w", grace, err)
	} else {
		err = <-served
	}
	stopChecks()
	err = errors.Join(err, p.close(within))
	p.log.Info("stopped")
	return err
}

// checkEvery bounds how long an outage goes unnoticed that no request meets.
const checkEvery = 10 * time.Second

// checkStore keeps the metric of the history current, as /readyz would answer: so an outage
// at night shows before a user meets it, and a node beside Redis has met it when it starts.
// The returned function ends that, and does not wait for a Redis that hangs.
func (p *program) checkStore() (stop func()) {
	life, cancel := context.WithCancel(context.Background())
	check := func() {
		ctx, cancel := context.WithTimeout(life, storePatience(p.config))
		defer cancel()
		err := p.history.ready(ctx)
		switch {
		case err == nil:
			p.usable.Set(1)
		case life.Err() == nil:
			p.usable.Set(0)
		}
	}
	check()
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(checkEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				check()
			case <-life.Done():
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}

// abandon closes a program that will not serve.
func (p *program) abandon(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), quitTimeout)
	defer cancel()
	return p.close(ctx)
}

// quitTimeout bounds the QUIT to the relays where requests have used up the grace.
const quitTimeout = time.Second

// close closes what was opened, in the order in which it is no longer needed.
func (p *program) close(ctx context.Context) (err error) {
	if p.relays != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), quitTimeout)
		defer cancel()
		if p.relays.Close(ctx) != nil {
			err = errors.New("emails were cut off")
		}
	}
	if p.history.close != nil {
		err = errors.Join(err, p.history.close(ctx))
	}
	return err
}
