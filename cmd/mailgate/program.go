package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/mailgate/mailgate"
	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/hooks"
	"github.com/mailgate/mailgate/internal/challenge"
	"github.com/mailgate/mailgate/internal/events"
	"github.com/mailgate/mailgate/internal/idempotency"
	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/nodes"
	"github.com/mailgate/mailgate/internal/notme"
	keys "github.com/mailgate/mailgate/internal/secret"
	"github.com/mailgate/mailgate/internal/trace"
	"github.com/mailgate/mailgate/internal/verify"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/proof"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/submission"
	"github.com/mailgate/mailgate/suppression"
	"github.com/mailgate/mailgate/suppression/bounce"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// A program is what serve and dev run.
type program struct {
	config      *config.Config
	log         *slog.Logger
	metrics     *prometheus.Registry
	output      *logOutput
	store       *store
	secret      []byte
	identity    address.Identity
	suppressed  *suppression.List
	proofs      *proof.Proofs
	relays      *relay.Relays
	tracer      *trace.Tracer  // nil: off
	events      *events.Events // nil: off
	ledger      *ledger.Ledger
	nodes       *nodes.Nodes // nil without Redis
	tasks       sync.WaitGroup
	endTasks    context.CancelFunc // nil: none was begun
	delivery    *delivery.Service
	server      *api.Server
	door        *submission.Server // nil: off
	content     content            // in force
	reloads     reloads
	certificate certificate
	digest      string // of the secret, beside Redis
}

// build opens what the settings name, each part with those before it. The caller serves the program, or closes it.
func build(ctx context.Context, c *config.Config, log logging) (*program, error) {
	p := &program{config: c, output: log.output, log: slog.New(log.handler), metrics: prometheus.NewRegistry()}
	if err := p.open(ctx, log.outcomes); err != nil {
		return nil, errors.Join(err, p.close(time.Now().Add(quitTimeout)))
	}
	return p, nil
}

// open checks all files before it opens anything.
func (p *program) open(ctx context.Context, outcomes ledger.Log) (err error) {
	c := p.config
	if p.content, err = readContent(c); err != nil {
		return err
	}
	if err := p.openRecords(ctx); err != nil {
		return err
	}
	live, err := p.content.live(p.store)
	if err != nil {
		return err
	}
	guesses, err := p.store.limiter("guesses", c.Guesses)
	if err != nil {
		return err
	}
	if p.relays, err = newRelays(c, p.log, relay.NewMetrics(p.metrics)); err != nil {
		return err
	}
	if p.tracer, err = trace.Open(ctx, currentVersion(), p.log); err != nil {
		return err
	}
	if c.EventsURL != "" {
		p.events, err = events.Open(events.Options{
			URL: c.EventsURL, Secrets: c.EventsSecret, Dir: eventsDir(c), MaxBytes: events.MaxBytes, Now: now, Log: p.log, Metrics: p.metrics,
		})
		if err != nil {
			return c.Complain("data-dir", err.Error())
		}
	}
	p.registerMetrics()
	doors := append([]string{ledger.HTTP}, hooks.Names(config.HooksOf[hooks.Sender](c))...)
	p.ledger = ledger.New(ledger.Options{Log: outcomes, Notes: p.log, Events: p.events, Metrics: p.metrics, Doors: doors, Now: now})
	if p.store.redis != nil {
		p.nodes = nodes.New(nodes.Options{
			Client: p.store.redis, Prefix: c.RedisPrefix, Name: nodeName(c), Own: &p.ledger.Recent, Audited: &p.ledger.Audited, Now: now, Metrics: p.metrics,
		})
	}
	links, err := notme.New(p.secret, c.PublicURL)
	if err != nil {
		return err
	}
	if p.delivery, err = p.newDelivery(guesses, links); err != nil {
		return err
	}
	p.delivery.Reload(live)
	return p.openDoors(guesses, links)
}

// openDoors makes what takes requests, by HTTP and, if the settings have addresses for it, by SMTP.
func (p *program) openDoors(guesses *throttle.Limiter, links *notme.Links) error {
	c := p.config
	wrongKeys, err := perSecond("wrong-keys", cmp.Or(c.LookupRate, wrongKeyRate))
	if err != nil {
		return err
	}
	lookups, err := perSecond("lookup-rate", c.LookupRate)
	if err != nil {
		return err
	}
	countdowns, err := perSecond("countdown-rate", countdownRate)
	if err != nil {
		return err
	}
	var turnstile *challenge.Turnstile
	if c.TurnstileSecret != "" {
		turnstile = &challenge.Turnstile{Sitekey: c.TurnstileSitekey, Secret: string(c.TurnstileSecret), Hosts: c.TurnstileHosts}
	}
	p.server, err = api.New(api.Options{
		Delivery: p.delivery, Ledger: p.ledger, Nodes: p.nodes, Suppressions: p.suppressed, Guesses: guesses,
		Access:     api.Access{APIKeys: c.APIKeys.Keys, AdminKeys: c.AdminKeys.Keys, TrustedProxies: c.TrustedProxies},
		RateLimits: api.RateLimits{Lookups: lookups, Countdowns: countdowns, WrongKeys: wrongKeys},
		Hooks:      c.Hooks(),
		Bounces: &bounce.Receiver{
			Suppressions: p.suppressed, Proofs: p.proofs, Records: p.store.records("bounces", nil, false), WithoutProof: c.HookUnproven, Now: now,
		},
		TryRules: p.tryRules, Turnstile: turnstile, NotMe: links,
		Identity: p.identity, Secret: p.secret, SendDeadline: sendDeadline, MaxConnections: maxConnections(c), Ops: c.OpsListen != "",
		Health: api.Health{Ready: p.ready, StoreTimeout: storeTimeout(c), Degraded: p.store.degraded, RelayStats: p.relays.Stats},
		Log:    p.log, Audit: api.Audit{Log: newAudit(c, p.output), Ready: p.output.flush}, Tracer: p.tracer, Metrics: p.metrics,
		Docs: api.Docs{OpenAPI: mailgate.OpenAPI, Version: currentVersion(), Dev: c.IsDev()}, Now: now,
	})
	if err != nil {
		return fmt.Errorf("preparing the server: %w", err)
	}
	if len(c.SubmissionListen) == 0 {
		return nil
	}
	if err := p.certificate.read(c); err != nil {
		return err
	}
	_, domain, _ := strings.Cut(c.From.Address.String(), "@")
	p.door = submission.New(submission.Options{
		Delivery: p.delivery, Ledger: p.ledger, Proofs: p.proofs, Identity: p.identity,
		Repeats: idempotency.New(p.store.records("emails", idempotency.Merge, true), lease.Milliseconds()),
		Keys:    c.APIKeys.Keys, Senders: c.SMTPSenders(), Defer: c.SubmissionDefer, Domain: domain, MaxBytes: int(c.SubmissionMaxBytes),
		MaxConnections: c.SubmissionMaxConnections, TLS: p.certificate.config(), WrongKeys: wrongKeys, Log: p.log, Tracer: p.tracer, Now: now,
	})
	promauto.With(p.metrics).NewGaugeFunc(prometheus.GaugeOpts{Name: "mailgate_smtp_connections", Help: "Open connections of the SMTP door."},
		func() float64 { return float64(p.door.Connections()) })
	return nil
}

// ready returns an error if no send can be decided now.
func (p *program) ready(ctx context.Context) error {
	if err := p.store.ready(ctx); err != nil {
		return err
	}
	return p.suppressed.Ready()
}

// openRecords opens the store, and what names and protects what is in it.
func (p *program) openRecords(ctx context.Context) (err error) {
	if p.store, err = openStore(ctx, p.config, p.log); err != nil {
		return err
	}
	if p.secret, err = openSecret(p.config); err != nil {
		return err
	}
	if p.config.RedisURL != "" {
		if p.digest, err = keys.Digest(p.secret); err != nil {
			return p.config.Complain("secret", err.Error())
		}
	}
	if p.identity, err = ledger.Names(p.content.identity, p.secret); err != nil {
		return err
	}
	if p.proofs, err = newProofs(p.config, p.secret); err != nil {
		return err
	}
	list := suppression.Options{Redis: p.store.redis, Prefix: p.store.prefix, Now: now, Log: p.log}
	if own := p.store.own; own != nil {
		list.Table, list.Events = own.Table("suppressions"), own.Table("bounces")
	}
	p.suppressed, err = suppression.Open(ctx, list)
	return err
}

// newDelivery makes what sends emails and checks codes, for all doors.
func (p *program) newDelivery(guesses *throttle.Limiter, links *notme.Links) (*delivery.Service, error) {
	codes, err := verify.New(verify.Options{
		Store: p.store.records("codes", verify.Merge, false), Secret: p.secret, Guesses: guesses,
		Lifetime: p.config.CodeLife.Milliseconds(), Log: p.log,
	})
	if err != nil {
		return nil, err
	}
	passes, err := p.store.limiter("passes", policyOf(onceADay))
	if err != nil {
		return nil, err
	}
	return delivery.New(delivery.Options{
		Relay: p.relays, Codes: codes, Requests: idempotency.New(p.store.records("requests", idempotency.Merge, true), lease.Milliseconds()),
		Suppressions: p.suppressed, Passes: passes, Proofs: p.proofs, NotMe: links, StoreTimeout: storeTimeout(p.config),
		Now: now, Log: p.log, Metrics: delivery.NewMetrics(p.metrics),
	}), nil
}

// lease is for how long a request is in flight: for as long as its send and a refund can take.
const lease = sendDeadline + delivery.LeaseRest

// A critical email reaches an address that bounced once a day. A token of a solved challenge counts once: it is
// remembered for longer than it is valid, by clocks that differ.
const (
	onceADay  = "day=1/24h"
	onceValid = "token=1/20m"
)

// policyOf is the policy of a text that is valid.
func policyOf(text string) throttle.Policy {
	p, _ := throttle.ParsePolicy(text)
	return p
}

const (
	wrongKeyRate  = 50       // that an address may send in a second where lookups have no limit
	countdownRate = 20       // countdowns that an address may ask for in a second
	burst         = 4        // seconds' worth that may come at once
	limitMemory   = 16 << 20 // for the counts of all keys or addresses
)

// perSecond limits what each key or address may do at this node; nil for a rate of 0.
func perSecond(name string, rate int) (*throttle.Limiter, error) {
	if rate == 0 {
		return nil, nil
	}
	bucket, err := throttle.NewTokenBucket(throttle.Tier{Name: "per-second", Limit: rate, Window: time.Second}, burst*rate)
	if err != nil {
		return nil, fmt.Errorf("limiting %s: %w", name, err)
	}
	memory, err := cache.Open(cache.Options{Bytes: limitMemory, Now: now})
	if err != nil {
		return nil, fmt.Errorf("limiting %s: %w", name, err)
	}
	return local.New(memory.Table(name), bucket), nil
}

// quitTimeout bounds the QUIT to the relays, whatever is left of the grace.
const quitTimeout = time.Second

// close closes what was opened, in the order in which it is no longer needed. In an outage of
// Redis, records are written to it until end.
func (p *program) close(end time.Time) (err error) {
	if p.relays != nil {
		quit, cancel := context.WithTimeout(context.Background(), quitTimeout)
		defer cancel()
		if p.relays.Close(quit) != nil {
			err = errors.New("emails were cut off")
		}
	}
	traced, cancel := context.WithTimeout(context.Background(), quitTimeout)
	defer cancel()
	p.tracer.Close(traced)
	err = errors.Join(err, p.events.Close())
	if p.endTasks != nil {
		p.endTasks()
		p.tasks.Wait()
	}
	if p.suppressed != nil {
		p.suppressed.Close()
	}
	if p.store != nil {
		err = errors.Join(err, p.store.close(end))
	}
	return err
}

// eventsDir is where the journal of events is.
func eventsDir(c *config.Config) string { return filepath.Join(c.DataDir, "events") }
