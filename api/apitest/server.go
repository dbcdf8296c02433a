// Package apitest runs the API in the process of a test, for tests of its pages and clients.
package apitest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mailgate/mailgate"
	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/api/front"
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/hooks"
	"github.com/mailgate/mailgate/internal/apikey"
	"github.com/mailgate/mailgate/internal/events"
	"github.com/mailgate/mailgate/internal/idempotency"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/notme"
	"github.com/mailgate/mailgate/internal/verify"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/proof"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/mailer/sandbox"
	"github.com/mailgate/mailgate/suppression"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/prometheus/client_golang/prometheus"
)

// Keys of two applications and of an operator.
const (
	APIKey   = "Hush-7f3b-9d21-c460"
	OtherKey = "another-key"
	AdminKey = "the-key-of-an-operator"
)

const (
	secret = "a secret of the tests"
	// Lease is how long an Idempotency-Key is in flight, in milliseconds.
	Lease = 30_000
)

// Server is an API on a free port, and what it works with.
type Server struct {
	API     *api.Server
	Options Options // it was made with
	Addr    string
	URL     string
	Served  chan error // has what Serve of the API returned

	Store     *cache.Store
	Mailboxes *throttle.Limiter // the limiter of their rule
	Codes     keyed.Store
	Requests  keyed.Store
	Relay     *sandbox.Server
	Ahead     atomic.Int64 // how far its clock is ahead of the machine's, in milliseconds

	listener net.Listener
	relays   *relay.Relays
	faults   *fault.Server // nil, if the relay has none
}

// Options are those of the API, and of what is made for it.
type Options struct {
	api.Options
	Live       delivery.Live // in force at the start
	Relay      delivery.Relay
	Proofs     *proof.Proofs
	Events     *events.Events // nil: off
	PublicURL  string         // of links in emails
	DrainDelay time.Duration  // before Shutdown stops serving
	sends      delivery.Options
}

// Setup is what a test changes.
type Setup struct {
	Dir    string        // of the records; they are in memory, if empty
	Now    func() int64  // the time of the machine and Ahead, if nil
	Faults *fault.Script // of a relay in place of the one that keeps what it is sent
	// Change may replace the stores of the Server, and its options. Those that are made of the stores
	// are made after it.
	Change func(*Server, *Options)
}

// Start starts a server with the default tiers and the action "reply", one a minute. change may be nil.
func Start(change func(*Server, *Options)) *Server {
	s := New(Setup{Change: change})
	s.Serve()
	return s
}

// New makes a server, for Serve.
func New(with Setup) *Server {
	s := &Server{}
	now := with.Now
	if now == nil {
		now = func() int64 { return time.Now().UnixMilli() + s.Ahead.Load() }
	}
	s.listen()
	s.Store = must.Have(cache.Open(cache.Options{Dir: with.Dir, Now: now}))
	s.Mailboxes = local.New(s.Store.Table("mailboxes"), throttle.DefaultPolicy())
	s.Codes, s.Requests = keyed.Local(s.Store.Table("codes")), keyed.Local(s.Store.Table("requests"))
	metrics := prometheus.NewRegistry()
	s.openRelays(with.Faults, relay.Options{Metrics: relay.NewMetrics(metrics)})
	composer := must.Have(message.NewComposer(must.Have(message.ParseSender("Acme <no-reply@acme.example>")), must.Have(message.LoadTemplates(nil, "en"))))
	o := Options{Relay: s.relays, Proofs: must.Have(proof.New(nil, []byte(secret)))}
	o.Live = delivery.Live{
		Composer: composer,
		Actions:  map[string]*throttle.Limiter{"reply": local.New(s.Store.Table("replies"), must.Have(throttle.ParsePolicy("minute=1/60s")))},
	}
	o.Options = api.Options{
		Identity: must.Have(address.NewIdentity(true)),
		Access: api.Access{
			APIKeys: must.Have(apikey.Parse("shop:"+APIKey+",blog:"+OtherKey, nil)), AdminKeys: must.Have(apikey.Parse("alex:"+AdminKey, nil)),
		},
		Guesses: local.New(s.Store.Table("guesses"), must.Have(throttle.ParsePolicy("ten-minutes=5/10m,day=20/24h"))), Secret: []byte(secret),
		Suppressions: must.Have(suppression.Open(context.Background(), suppression.Options{Table: s.Store.Table("suppressions"), Events: s.Store.Table("bounces"), Now: now})),
		TryRules: func(now func() int64, tiers *throttle.Policy) (*rules.Set, func(), error) {
			own := must.Have(cache.Open(cache.Options{Now: now}))
			if tiers == nil {
				tiers = new(throttle.DefaultPolicy())
			}
			set, err := rules.New(rules.Options{}, rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: local.New(own.Table("mailboxes"), *tiers)})
			return set, func() { _ = own.Close() }, err
		},
		SendDeadline: 15 * time.Second, MaxConnections: 10_000,
		Health: api.Health{StoreTimeout: 2 * time.Second, Ready: s.Store.Ready, Degraded: func() (int64, int) { return 0, 0 }, RelayStats: s.relays.Stats},
		Docs:   api.Docs{OpenAPI: mailgate.OpenAPI, Version: "dev"}, Now: now,
		RateLimits: api.RateLimits{WrongKeys: Limiter(must.Have(throttle.NewTokenBucket(throttle.Tier{Name: "per-second", Limit: 1000, Window: time.Second}, 4000)), now)}, Log: slog.New(slog.DiscardHandler), Metrics: metrics,
		Audit: api.Audit{Log: slog.New(slog.DiscardHandler), Ready: func(context.Context) error { return nil }},
	}
	if with.Change != nil {
		with.Change(s, &o)
	}
	if o.Live.Rules == nil {
		o.Live.Rules = must.Have(rules.New(rules.Options{}, rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: s.Mailboxes}))
	}
	o.sends = delivery.Options{
		Relay: o.Relay, Codes: must.Have(verify.New(verify.Options{Store: s.Codes, Secret: []byte(secret), Guesses: o.Guesses, Log: o.Log})),
		Requests: idempotency.New(s.Requests, Lease), Suppressions: o.Suppressions, Proofs: o.Proofs,
		Passes:       local.New(s.Store.Table("passes"), must.Have(throttle.ParsePolicy("day=1/24h"))),
		StoreTimeout: o.Health.StoreTimeout, Now: now, Log: o.Log,
	}
	s.Options = o
	s.make()
	return s
}

// make makes the API, its delivery and its ledger.
func (s *Server) make() {
	o := &s.Options
	o.NotMe = must.Have(notme.New(o.Secret, o.PublicURL))
	o.Identity = must.Have(ledger.Names(o.Identity, o.Secret))
	o.sends.NotMe, o.sends.Metrics = o.NotMe, delivery.NewMetrics(o.Metrics)
	o.Delivery = delivery.New(o.sends)
	s.Reload(o.Live)
	doors := []string{ledger.HTTP}
	for _, hook := range o.Hooks {
		if _, sends := hook.(hooks.Sender); sends {
			doors = append(doors, hook.Name())
		}
	}
	o.Ledger = ledger.New(ledger.Options{Log: lines{o.Log}, Notes: o.Log, Events: o.Events, Metrics: o.Metrics, Doors: doors, Now: o.Now})
	s.API = must.Have(api.New(o.Options))
}

// Reload replaces what is in force.
func (s *Server) Reload(live delivery.Live) { s.Options.Delivery.Reload(live) }

// lines writes the lines of outcomes to where a log has its own.
type lines struct{ *slog.Logger }

// Enabled implements ledger.Log.
func (l lines) Enabled(level slog.Level) bool {
	return l.Handler().Enabled(context.Background(), level)
}

// Line implements ledger.Log.
func (l lines) Line(o *ledger.Outcome, line []byte) {
	var members map[string]any
	if err := json.Unmarshal(line, &members); err != nil {
		panic(err)
	}
	delete(members, slog.TimeKey)
	delete(members, slog.LevelKey)
	message, _ := members[slog.MessageKey].(string)
	delete(members, slog.MessageKey)
	var attrs []slog.Attr
	for name, value := range members {
		attrs = append(attrs, slog.Any(name, value))
	}
	l.LogAttrs(context.Background(), o.Level, message, attrs...)
}

func (s *Server) listen() {
	s.listener, s.Served = must.Have(net.Listen("tcp", "127.0.0.1:0")), make(chan error, 1)
	s.Addr = s.listener.Addr().String()
	s.URL = "http://" + s.Addr
}

func (s *Server) openRelays(faults *fault.Script, o relay.Options) {
	s.Relay = must.Have(sandbox.Start(sandbox.Options{KeepMessages: 100_000, KeepBytes: 1 << 30}))
	url := s.Relay.URL()
	if faults != nil {
		s.faults = must.Have(fault.Start(*faults))
		url = s.faults.URL()
	}
	s.relays = must.Have(relay.New([]relay.URL{must.Have(relay.ParseURL(url))}, o))
}

// Serve answers requests until Close.
func (s *Server) Serve() {
	go func() {
		s.Served <- s.API.Serve(s.listener)
		close(s.Served)
	}()
}

// Another starts a second server on the same stores and relay, which are closed with the first.
func (s *Server) Another() *Server {
	next := &Server{Options: s.Options, Store: s.Store, Mailboxes: s.Mailboxes, Relay: s.Relay}
	next.Options.Metrics = prometheus.NewRegistry()
	next.make()
	next.listen()
	next.Serve()
	return next
}

// Shutdown ends the API, in ten seconds at most.
func (s *Server) Shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(s.ShutdownWithin(ctx), <-s.Served)
}

// ShutdownWithin ends the API.
func (s *Server) ShutdownWithin(ctx context.Context) error {
	s.API.Drain()
	front.Pause(ctx, s.Options.DrainDelay)
	s.Options.Delivery.Drain(ctx)
	err := s.API.Shutdown(ctx)
	s.Options.Delivery.Close(ctx)
	s.API.ShutdownOps(ctx)
	return err
}

// Close ends all of it.
func (s *Server) Close() error {
	err := s.Shutdown()
	if s.faults != nil {
		err = errors.Join(err, s.faults.Close())
	}
	s.Options.Suppressions.Close()
	return errors.Join(err, s.relays.Close(context.Background()), s.Relay.Close(), s.Store.Close())
}

// Mails returns the texts that were sent to an address, in order.
func (s *Server) Mails(to string) (texts []string) {
	for _, mail := range s.Relay.List() {
		if strings.EqualFold(mail.To[0], to) {
			texts = append(texts, mail.Text)
		}
	}
	return texts
}

// Relayed returns how many emails the relay of Setup.Faults was given in whole.
func (s *Server) Relayed() int { return len(s.faults.Mails()) }

var sixDigits = regexp.MustCompile(`\b\d{6}\b`)

// Code returns the code in the last email to an address.
func (s *Server) Code(to string) string {
	mails := s.Mails(to)
	if len(mails) == 0 {
		panic(fmt.Sprintf("no email was sent to %s", to))
	}
	return sixDigits.FindString(mails[len(mails)-1])
}

// Limiter is a limiter on a store of its own.
func Limiter(a throttle.Algorithm, now func() int64) *throttle.Limiter {
	return local.New(must.Have(cache.Open(cache.Options{Now: now})).Table("limiter"), a)
}
