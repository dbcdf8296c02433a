// Package apitest runs the API in the process of a test, for tests of its pages and clients.
package apitest

import (
	"context"
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
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/mailer/sandbox"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/verify"
	"github.com/prometheus/client_golang/prometheus"
)

const (
	APIKey   = "Hush-7f3b-9d21-c460"
	AdminKey = "the-key-of-an-operator"

	secret  = "a secret that is hard to guess"
	timeout = 30 * time.Second
)

// Server is an API on a free port, with its records in memory and a relay that keeps what it is sent.
type Server struct {
	URL       string
	Relay     *sandbox.Server
	Mailboxes throttle.Historian
	Ahead     atomic.Int64 // how far its clock is ahead of the machine's, in milliseconds
	Close     func() error
}

// Start starts a server with the default tiers and the action "reply", one a minute. change may be nil.
func Start(change func(*Server, *api.Options)) *Server {
	s := &Server{}
	now := func() int64 { return time.Now().UnixMilli() + s.Ahead.Load() }
	store := must(cache.Open(cache.Options{Now: now}))
	s.Mailboxes = local.New(store.Table("mailboxes"), throttle.DefaultPolicy(), now)
	s.Relay = must(sandbox.Start(sandbox.Options{}))
	relays := must(relay.New([]relay.URL{must(relay.ParseURL(s.Relay.URL()))}, relay.Options{}))
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	s.URL = "http://" + listener.Addr().String()
	guesses := local.New(store.Table("guesses"), must(throttle.ParsePolicy("ten-minutes=5/10m,day=20/24h")), now)
	composer := must(message.NewComposer(must(message.ParseSender("Acme <no-reply@acme.example>")), must(message.LoadTemplates(nil, "en"))))
	options := api.Options{
		Live: api.Live{
			Composer: composer,
			Actions:  map[string]throttle.Limiter{"reply": local.New(store.Table("replies"), must(throttle.ParsePolicy("minute=1/60s")), now)},
		},
		Relay: delivery.FromRelays(relays), RelayStats: relays.Stats, Identity: must(address.NewIdentity(true)),
		APIKeys: must(api.ParseKeys("app:" + APIKey)), AdminKeys: must(api.ParseKeys("alex:" + AdminKey)),
		Codes:   must(verify.New(verify.Options{Store: keyed.Local(store.Table("codes"), now), Secret: []byte(secret), Guesses: guesses})),
		Guesses: guesses, Requests: idempotency.New(keyed.Local(store.Table("requests"), now), 60_000), Secret: []byte(secret),
		SendDeadline: timeout, StoreTimeout: timeout / 4, MaxConnections: 1000, Ready: store.Ready, DegradedSince: func() int64 { return 0 },
		OpenAPI: mailgate.OpenAPI, Version: "dev", Now: now,
		Log: slog.New(slog.DiscardHandler), Audit: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
	}
	if change != nil {
		change(s, &options)
	}
	options.Live.Rules = must(rules.New(rules.Options{}, rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: s.Mailboxes, Exact: true}))
	server, served := must(api.New(options)), make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	s.Close = func() error {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		return errors.Join(server.Shutdown(ctx), <-served, relays.Close(ctx), s.Relay.Close(), store.Close())
	}
	return s
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

var sixDigits = regexp.MustCompile(`\b\d{6}\b`)

// Code returns the code in the last email to an address.
func (s *Server) Code(to string) string {
	mails := s.Mails(to)
	if len(mails) == 0 {
		panic(fmt.Sprintf("no email was sent to %s", to))
	}
	return sixDigits.FindString(mails[len(mails)-1])
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
