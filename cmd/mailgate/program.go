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
	"github.com/mailgate/mailgate/clock"
	"github.com/mailgate/mailgate/cmd/mailgate/settings"
	"github.com/mailgate/mailgate/mailer/relay"
	keys "github.com/mailgate/mailgate/secret"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/memory"
	"github.com/mailgate/mailgate/throttle/meter"
)

// A program is everything that runs, put together from settings. This is the one
// place that knows all the parts.
type program struct {
	settings *settings.Settings
	logTo    *unreadLog
	log      *slog.Logger
	history  history
	content  content // in force
	relays   *relay.Relays
	server   *api.Server
	reloads  reloads
	lookout  *lookout
	digest   string // of the secret, where servers share a history and so have to share that
}

// build opens what the settings name. Nothing is served yet; the caller has it serve, or
// abandons it. Requests for paths that are not the API's go to fallback, which may be nil.
func build(ctx context.Context, s *settings.Settings, logTo io.Writer, fallback http.Handler) (*program, error) {
	p := &program{settings: s, logTo: newUnreadLog(logTo)}
	p.log = newLog(s, p.logTo)
	p.logTo.tell = func(lost int) {
		p.log.Error("lines of the log were lost, as nobody read it", "lines", lost)
	}
	if err := p.open(ctx, newAudit(s, keptLog{p.logTo}), fallback); err != nil {
		return nil, errors.Join(err, p.abandon(ctx))
	}
	return p, nil
}

func (p *program) open(ctx context.Context, audit *slog.Logger, fallback http.Handler) error {
	options, err := fixedOptions(p.settings)
	if err != nil {
		return err
	}
	if err := p.openContent(ctx, &options); err != nil {
		return err
	}
	options.Metrics = prometheus.NewRegistry()
	options.Metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	p.reloads = newReloads(options.Metrics, p.content.rules)
	p.lookout = newLookout(options.Metrics, p.settings, p.history.ready)
	options.Metrics.MustRegister(p.logTo.counter())
	hooks, err := api.RelayHooks(options.Metrics)
	if err != nil {
		return fmt.Errorf("preparing the metrics: %w", err)
	}
	if p.relays, err = newRelays(p.settings, p.log, hooks); err != nil {
		return err
	}
	options.Sender, options.RelayStats = api.FromRelays(p.relays), p.relays.Stats
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

// openContent reads the rules and templates, and then opens what the rules count on.
func (p *program) openContent(ctx context.Context, options *api.Options) (err error) {
	if p.content, err = readContent(p.settings); err != nil {
		return err
	}
	if p.history, err = openHistory(ctx, p.settings, p.content.rules.Mailbox().Tiers, p.log); err != nil {
		return err
	}
	if options.Secret, err = openSecret(p.settings); err != nil {
		return err
	}
	if p.settings.RedisURL != "" {
		if p.digest, err = keys.Digest(options.Secret); err != nil {
			return p.settings.Complain("secret", err.Error())
		}
	}
	options.Codes, options.Guesses, options.Repeats = p.history.codes, p.history.guesses(p.settings.Guesses), p.history.repeats
	options.Ready, options.Patience = p.history.ready, p.history.patience
	if p.history.watch != nil {
		options.DegradedSince = func() int64 { return p.history.watch.State().Since }
	}
	options.Live, err = p.content.live(p.history)
	return err
}

// fixedOptions are those that follow from the settings alone.
func fixedOptions(s *settings.Settings) (o api.Options, err error) {
	if o.Identity, err = newIdentity(s); err != nil {
		return o, err
	}
	if o.APIKeys, o.AdminKeys, err = accessKeys(s); err != nil {
		return o, err
	}
	if o.Lookups, err = aSecond(s, "lookup_rate", s.LookupRate); err != nil {
		return o, err
	}
	if o.Countdowns, err = aSecond(s, "countdown_rate", s.CountdownRate); err != nil {
		return o, err
	}
	o.CodeLife = s.CodeLife.Milliseconds()
	o.TrustedProxies, o.MaxConnections = s.TrustedProxies, connectionsWithin(s, mostFiles())
	o.SendDeadline, o.StorePatience, o.DrainDelay = sendDeadline, storePatience(s), s.DrainDelay
	o.OpenAPI, o.Version, o.Ops = mailgate.OpenAPI, currentVersion(), s.OpsListen != ""
	o.Now = clock.Now
	return o, nil
}

// lookupBurst is how many seconds' worth of lookups may come at once.
const lookupBurst = 4

// aSecond bounds how often each key, or each address, may look things up; 0 is no bound.
// It is forgotten with the process, as it protects nobody but those who are there.
func aSecond(s *settings.Settings, name string, rate int) (throttle.Limiter, error) {
	if rate == 0 {
		return nil, nil
	}
	bucket, err := meter.NewTokenBucket(throttle.Tier{Name: "second", Limit: rate, Window: 1000}, lookupBurst*rate)
	if err != nil {
		return nil, s.Complain(name, err.Error())
	}
	return memory.New(bucket, memory.Options{}), nil
}

// accessKeys are the keys to ask for. Where keys are asked for at all but none was
// set for operators, theirs is one that nobody knows.
func accessKeys(s *settings.Settings) (forAPI, forAdmins api.Keys, err error) {
	if forAPI, err = api.ParseKeys(string(s.APIKeys)); err != nil {
		return forAPI, forAdmins, s.Complain("api_keys", err.Error())
	}
	admins := string(s.AdminKeys)
	if admins == "" && s.APIKeys != "" {
		admins = "nobody:" + rand.Text()
	}
	if forAdmins, err = api.ParseKeys(admins); err != nil {
		return forAPI, forAdmins, s.Complain("admin_keys", err.Error())
	}
	return forAPI, forAdmins, nil
}

// serve answers requests until ctx ends; then it lets those in flight finish, within
// the grace, and closes everything. So it does where the listener fails, which is an error.
// Each signal from again has the content read again.
func (p *program) serve(ctx context.Context, at listeners, again <-chan os.Signal) error {
	if p.history.watch != nil {
		p.history.watch.Start() // not before: its end waits for Redis where anything is owed
	}
	p.lookout.begin()
	served := p.serveAt(at)
	for {
		select {
		case err := <-served:
			p.log.Error("nothing more can be accepted", "error", err)
			return errors.Join(fmt.Errorf("serving: %w", err), p.drain(ctx, served))
		case <-again:
			p.reload()
		case <-ctx.Done():
			return p.drain(ctx, served)
		}
	}
}

// serveAt serves at all listeners. The channel has the error of the first that ends before its time,
// and is closed when all have ended.
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

// drain ends the serving.
func (p *program) drain(ctx context.Context, served <-chan error) error {
	grace := p.settings.ShutdownGrace
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
	p.lookout.end()
	err = errors.Join(err, p.close(within))
	p.log.Info("stopped")
	return err
}

// abandon closes what will not serve.
func (p *program) abandon(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leave)
	defer cancel()
	return p.close(ctx)
}

// leave is how long to take leave of the relays where requests have used up the grace.
const leave = time.Second

// close gives back what was opened, in the order in which it is no longer needed.
func (p *program) close(ctx context.Context) (err error) {
	if p.relays != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leave)
		defer cancel()
		if p.relays.Close(ctx) != nil {
			err = errors.New("mails were cut off")
		}
	}
	if p.history.close != nil {
		err = errors.Join(err, p.history.close(ctx))
	}
	return err
}
