package client_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate"
	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/client"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/mailer/sandbox"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/verify"
)

const opsKey = "ops-" + key

// A gate is a whole mailgate in this process: the real API on a free port, with a real
// relay behind it, by a clock that tests move.
type gate struct {
	URL  string
	box  *sandbox.Server // what it has mailed
	bad  *fault.Server   // the relay in place of the box, if it was asked for
	now  atomic.Int64
	stop []func()
}

// openGate starts one, with a relay that keeps the script if there is one.
func openGate(script *fault.Script) *gate {
	g := &gate{}
	g.now.Store(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMilli())
	relays := g.relays(script)
	store := need(cache.Open(cache.Options{Now: g.now.Load}))
	g.stop = append(g.stop, func() { need(0, store.Close()) })
	counts := func(name, policy string) *local.Limiter {
		return local.New(store.Table(name), need(throttle.ParsePolicy(policy)), g.now.Load)
	}
	guesses, secret := counts("guesses", verify.DefaultGuesses().String()), []byte("a secret that no test guesses")
	from := need(message.ParseSender("Acme <no-reply@acme.example>"))
	own := rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Exact: true, Limiter: counts("mailboxes", throttle.DefaultPolicy().String())}
	visitors := rules.Rule{Name: "client-ip", By: rules.ByClientIP, Exact: true, Limiter: counts("visitors", "hour=100/1h")}
	server := need(api.New(api.Options{
		Live: api.Live{
			Rules:    need(rules.New(rules.Options{}, own, visitors)),
			Actions:  map[string]throttle.Limiter{"reply": counts("reply", "minute=1/60s")},
			Composer: need(message.NewComposer(from, need(message.LoadTemplates(nil, "en")))),
		},
		Relay: delivery.FromRelays(relays), Identity: need(address.NewIdentity(true)),
		APIKeys: need(api.ParseKeys("app:" + key)), AdminKeys: need(api.ParseKeys("ops:" + opsKey)), Secret: secret,
		Codes:    need(verify.New(verify.Options{Store: keyed.Local(store.Table("codes"), g.now.Load), Secret: secret, Guesses: guesses})),
		Guesses:  guesses,
		Requests: need(idempotency.New(idempotency.Options{Store: keyed.Local(store.Table("requests"), g.now.Load)})),
		OpenAPI:  mailgate.OpenAPI, Now: g.now.Load,
	}))
	listener := need(net.Listen("tcp", "127.0.0.1:0"))
	g.URL = "http://" + listener.Addr().String()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	g.stop = append(g.stop, func() { need(0, within(server.Shutdown)); need(0, <-served) })
	return g
}

func (g *gate) relays(script *fault.Script) *relay.Relays {
	where := ""
	if script == nil {
		g.box = need(sandbox.Start(sandbox.Options{}))
		g.stop = append(g.stop, func() { need(0, g.box.Close()) })
		where = g.box.URL()
	} else {
		g.bad = need(fault.Start(*script))
		g.stop = append(g.stop, func() { need(0, g.bad.Close()) })
		where = "smtp://" + g.bad.Addr() + "?tls=none"
	}
	relays := need(relay.New([]relay.URL{need(relay.ParseURL(where))}, relay.Options{}))
	g.stop = append(g.stop, func() { need(0, within(relays.Close)) })
	return relays
}

// Close ends what openGate started, the last first.
func (g *gate) Close() {
	for i := len(g.stop) - 1; i >= 0; i-- {
		g.stop[i]()
	}
}

// pass lets time pass, for mailgate alone.
func (g *gate) pass(d time.Duration) { g.now.Add(d.Milliseconds()) }

// need gives a value, and ends everything if there is none: nothing can be tested then.
func need[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func within(end func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return end(ctx)
}

// newGate is one for a test.
func newGate(t testing.TB, script *fault.Script) *gate {
	t.Helper()
	g := openGate(script)
	t.Cleanup(g.Close)
	return g
}

// operator is a client with an admin key.
func (g *gate) operator(t testing.TB) *client.Client {
	t.Helper()
	c := need(client.New(g.URL, opsKey, client.Options{}))
	t.Cleanup(c.CloseIdleConnections)
	return c
}
