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
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/client"
	"github.com/mailgate/mailgate/idempotency"
	kept "github.com/mailgate/mailgate/idempotency/local"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/mailer/sandbox"
	"github.com/mailgate/mailgate/rules"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/memory"
	"github.com/mailgate/mailgate/verify"
	codes "github.com/mailgate/mailgate/verify/local"
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
	disk := need(cache.Open(cache.DiskOptions{Dir: cache.Memory}))
	limiter := need(local.New(disk, local.Options{Policy: throttle.DefaultPolicy(), Size: cachetest.Small, Now: g.now.Load}))
	book := need(codes.New(disk, codes.Options{Size: cachetest.Small, Now: g.now.Load}))
	const day = 24 * 60 * 60 * 1000
	answers := need(kept.New(disk, kept.Options{Terms: idempotency.Terms{Lease: 30_000, Keep: day}, Size: cachetest.Small, Now: g.now.Load}))
	handed := need(kept.New(disk, kept.Options{Terms: idempotency.Terms{Lease: day, Keep: day}, Name: "handed-over", Size: cachetest.Small, Now: g.now.Load}))
	g.stop = append(g.stop, func() { answers.Close(); handed.Close(); book.Close(); limiter.Close(); need(0, disk.Close()) })

	from := need(message.ParseSender("Acme <no-reply@acme.example>"))
	own := rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: limiter}
	visitors := rules.Rule{Name: "client-ip", By: rules.ByClientIP, Limiter: limiter.Tiers("visitors", need(throttle.ParsePolicy("hour=100/1h")))}
	server := need(api.New(api.Options{
		Live: api.Live{
			Rules:    need(rules.New(rules.Options{}, own, visitors)),
			Actions:  map[string]throttle.Limiter{"reply": memory.NewTiers(need(throttle.ParsePolicy("minute=1/60s")), memory.Options{Now: g.now.Load})},
			Composer: need(message.NewComposer(from, need(message.LoadTemplates(nil, "en")))),
		},
		Sender: api.FromRelays(relays), Identity: need(address.NewIdentity(true)),
		APIKeys: need(api.ParseKeys("app:" + key)), AdminKeys: need(api.ParseKeys("ops:" + opsKey)),
		Codes: book, Guesses: limiter.Tiers("guesses", verify.DefaultGuesses()),
		Repeats: api.Repeats{Answers: answers, HandedOver: handed},
		OpenAPI: mailgate.OpenAPI, Now: g.now.Load,
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
