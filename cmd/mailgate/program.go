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
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/mailgate/mailgate"
	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/cmd/mailgate/settings"
	"github.com/mailgate/mailgate/mailer"
)

// A program is everything that runs, put together from settings. This is the one
// place that knows all the parts.
type program struct {
	log     *slog.Logger
	history history
	relays  *mailer.Relays
	server  *api.Server
	grace   time.Duration
}

// build opens what the settings name. Nothing is served yet; the caller closes it.
// Requests for paths that are not the API's go to fallback, which may be nil.
func build(ctx context.Context, s *settings.Settings, logTo io.Writer, fallback http.Handler) (*program, error) {
	p := &program{log: newLog(s, logTo), grace: s.ShutdownGrace}
	if err := p.open(ctx, s, newAudit(s, logTo), fallback); err != nil {
		return nil, errors.Join(err, p.close(ctx))
	}
	return p, nil
}

func (p *program) open(ctx context.Context, s *settings.Settings, audit *slog.Logger, fallback http.Handler) error {
	options, err := fixedOptions(s)
	if err != nil {
		return err
	}
	if p.history, err = openHistory(ctx, s, p.log); err != nil {
		return err
	}
	options.Metrics = prometheus.NewRegistry()
	options.Metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	hooks, err := api.RelayHooks(options.Metrics)
	if err != nil {
		return fmt.Errorf("preparing the metrics: %w", err)
	}
	if p.relays, err = newRelays(s, p.log, hooks); err != nil {
		return err
	}
	options.Limiter, options.Ready = p.history.limiter, p.history.ready
	options.Sender, options.RelayStats = p.relays, p.relays.Stats
	options.Log, options.Audit = p.log, audit
	options.Fallback = fallback
	if p.server, err = api.New(options); err != nil {
		return fmt.Errorf("making the server: %w", err)
	}
	return nil
}

// fixedOptions are those that follow from the settings alone.
func fixedOptions(s *settings.Settings) (o api.Options, err error) {
	if o.Composer, err = newComposer(s); err != nil {
		return o, err
	}
	if o.Identity, err = mailer.NewIdentity(s.Fold); err != nil {
		return o, fmt.Errorf("preparing the rules for addresses: %w", err)
	}
	if o.APIKeys, o.AdminKeys, err = accessKeys(s); err != nil {
		return o, err
	}
	o.Policy, o.CodeLife = s.Tiers, s.CodeLife.Milliseconds()
	o.TrustedProxies, o.MaxConnections = s.TrustedProxies, s.MaxConnections
	o.SendDeadline, o.DrainDelay = sendDeadline, s.DrainDelay
	o.OpenAPI, o.Version = mailgate.OpenAPI, currentVersion()
	o.Now = func() int64 { return time.Now().UnixMilli() }
	return o, nil
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
// the grace, and closes everything.
func (p *program) serve(ctx context.Context, listener net.Listener) error {
	served := make(chan error, 1)
	go func() { served <- p.server.Serve(listener) }()
	select {
	case err := <-served:
		return errors.Join(fmt.Errorf("serving: %w", err), p.close(ctx))
	case <-ctx.Done():
	}
	p.log.Info("draining", "grace", p.grace.String())
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.grace)
	defer cancel()
	err := p.server.Shutdown(grace)
	if err != nil {
		err = fmt.Errorf("requests were cut off after %s: %w", p.grace, err)
	} else {
		err = <-served
	}
	err = errors.Join(err, p.close(grace))
	p.log.Info("stopped")
	return err
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
		err = errors.Join(err, p.history.close())
	}
	return err
}
