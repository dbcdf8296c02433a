package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/mailgate/mailgate"
	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/idempotency"
	keys "github.com/mailgate/mailgate/internal/secret"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/verify"
)

// A program is everything that runs. It is the one place that knows all parts.
type program struct {
	config  *config.Config
	log     *slog.Logger
	store   *store
	health  *health
	content content // in force
	relays  *relay.Relays
	server  *api.Server
	reloads reloads
	digest  string // of the secret, where processes share a history
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
	if p.content, err = readContent(p.config); err != nil {
		return err
	}
	if p.store, err = openStore(ctx, p.config, p.log); err != nil {
		return err
	}
	if err := p.openRecords(&options); err != nil {
		return err
	}
	options.Metrics = prometheus.NewRegistry()
	if err := p.registerMetrics(options.Metrics); err != nil {
		return err
	}
	hooks, err := api.RelayHooks(options.Metrics)
	if err != nil {
		return fmt.Errorf("preparing the metrics: %w", err)
	}
	if p.relays, err = newRelays(p.config, p.log, hooks); err != nil {
		return err
	}
	options.Relay, options.RelayStats = delivery.FromRelays(p.relays), p.relays.Stats
	options.Log, options.Audit = p.log, audit
	options.Fallback = fallback
	if p.server, err = api.New(options); err != nil {
		return fmt.Errorf("making the server: %w", err)
	}
	return nil
}

// openRecords makes what keeps its records in the store.
func (p *program) openRecords(o *api.Options) (err error) {
	if o.Secret, err = openSecret(p.config); err != nil {
		return err
	}
	if p.config.RedisURL != "" {
		if p.digest, err = keys.Digest(o.Secret); err != nil {
			return p.config.Complain("secret", err.Error())
		}
	}
	guesses, err := p.store.limiter("guesses", p.config.Guesses)
	if err != nil {
		return err
	}
	o.Codes, err = verify.New(verify.Options{
		Store: p.store.records("codes", verify.Merge, false), Secret: o.Secret, Guesses: guesses,
		Lifetime: p.config.CodeLife.Milliseconds(), Log: p.log,
	})
	if err != nil {
		return err
	}
	// An Idempotency-Key is in flight for as long as its send and a refund can take.
	lease := sendDeadline + delivery.LeaseRest
	o.Requests, err = idempotency.New(idempotency.Options{
		Store: p.store.records("requests", idempotency.Merge, true), Lease: lease.Milliseconds(),
	})
	if err != nil {
		return err
	}
	o.Guesses, o.Ready, o.DegradedSince = guesses, p.store.ready, p.store.degradedSince
	o.Live, err = p.content.live(p.store)
	return err
}

func (p *program) registerMetrics(registry *prometheus.Registry) error {
	p.reloads = newReloads(registry, p.content.rules)
	p.health = newHealth(p.store.ready, storeTimeout(p.config))
	all := []prometheus.Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), p.health.usable,
	}
	if p.digest != "" {
		all = append(all, newSecretInfo(p.digest))
	}
	switch {
	case p.store.standby != nil:
		all = append(all, standbyMetrics(p.store.standby.State)...)
	case p.store.redis != nil:
		p.health.refuses = p.log
		p.store.redis.AddHook(failureHook(p.health.fail))
		all = append(all, p.health.sinceGauge())
	}
	for _, collector := range all {
		if err := registry.Register(collector); err != nil {
			return fmt.Errorf("preparing the metrics: %w", err)
		}
	}
	return nil
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
	o.TrustedProxies, o.MaxConnections = c.TrustedProxies, connectionsWithin(c, maxFiles())
	o.SendDeadline, o.StoreTimeout, o.DrainDelay = sendDeadline, storeTimeout(c), c.DrainDelay
	o.OpenAPI, o.Version, o.Ops = mailgate.OpenAPI, currentVersion(), c.OpsListen != ""
	o.Now = now
	return o, nil
}

const (
	lookupBurst  = 4        // how many seconds' worth of lookups may come at once
	lookupMemory = 16 << 20 // for the counts of all keys or addresses, which end within seconds
)

// perSecond limits the lookups of each key or address; 0 is no limit.
func perSecond(c *config.Config, name string, rate int) (throttle.Limiter, error) {
	if rate == 0 {
		return nil, nil
	}
	bucket, err := throttle.NewTokenBucket(throttle.Tier{Name: "second", Limit: rate, Window: time.Second}, lookupBurst*rate)
	if err != nil {
		return nil, c.Complain(name, err.Error())
	}
	memory, err := cache.Open(cache.Options{Bytes: lookupMemory, Now: now})
	if err != nil {
		return nil, fmt.Errorf("counting lookups: %w", err)
	}
	return local.New(memory.Table(name), bucket, now), nil
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

// serve answers requests until ctx ends or a listener fails, which is an error. Then it lets
// those in flight finish, within the grace, and closes everything. Each signal from reload
// reads the content again.
func (p *program) serve(ctx context.Context, at listeners, reload <-chan os.Signal) error {
	if p.store.standby != nil {
		p.store.standby.Start()
	}
	stopChecks := p.health.start()
	served := p.serveAt(at)
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

// serveAt serves at all listeners. The channel has the error of the first that ends early, and
// is closed when all have ended.
func (p *program) serveAt(at listeners) <-chan error {
	served := make(chan error, 2)
	var all sync.WaitGroup
	all.Go(func() { served <- p.server.Serve(at.main) })
	if at.ops != nil {
		all.Go(func() { served <- p.server.ServeOps(at.ops) })
	}
	go func() {
		all.Wait()
		close(served)
	}()
	return served
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
		for one := range served {
			err = errors.Join(err, one)
		}
	}
	stopChecks()
	err = errors.Join(err, p.close(within))
	p.log.Info("stopped")
	return err
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
	if p.store != nil {
		err = errors.Join(err, p.store.close(ctx))
	}
	return err
}
