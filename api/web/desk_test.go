package web_test

import (
	"context"
	"crypto/rand"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate"
	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/mailer"
	"github.com/mailgate/mailgate/mailer/sandbox"
	"github.com/mailgate/mailgate/rules"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

const (
	opsKey = "the-key-of-an-operator"
	appKey = "the-key-of-an-application"
)

// A desk is a whole server, as operators meet it.
type desk struct {
	t       *testing.T
	URL     string
	limiter *local.Limiter
	ahead   atomic.Int64 // how far its clock is ahead of the machine's, in milliseconds
	broken  atomic.Bool  // whether the store is
}

// newDesk starts a server; options may change what it works with.
func newDesk(t *testing.T, options func(*api.Options)) *desk {
	t.Helper()
	d := &desk{t: t}
	now := func() int64 { return time.Now().UnixMilli() + d.ahead.Load() }
	disk := must(cache.Open(cache.DiskOptions{Dir: cache.Memory}))(t)
	t.Cleanup(func() { disk.Close() })
	d.limiter = must(local.New(disk, local.Options{Policy: throttle.DefaultPolicy(), Now: now}))(t)
	t.Cleanup(d.limiter.Close)
	set := must(rules.New(rules.Options{}, rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: &breakable{d.limiter, &d.broken}}))(t)
	box := must(sandbox.Start(sandbox.Options{}))(t)
	t.Cleanup(func() { box.Close() })
	relays := must(mailer.NewRelays([]mailer.RelayURL{must(mailer.ParseRelayURL(box.URL()))(t)}, mailer.Options{}))(t)
	t.Cleanup(func() { relays.Close(context.Background()) })
	templates := must(mailer.LoadTemplates(nil, "en"))(t)
	composer := must(mailer.NewComposer(must(mailer.ParseSender("Acme <no-reply@acme.example>"))(t), templates, rand.Reader))(t)
	o := api.Options{
		Live: api.Live{Rules: set, Composer: composer}, Sender: relays, RelayStats: relays.Stats,
		Identity: must(mailer.NewIdentity(true))(t),
		APIKeys:  must(api.ParseKeys("shop:" + appKey))(t), AdminKeys: must(api.ParseKeys("alex:" + opsKey))(t),
		OpenAPI: mailgate.OpenAPI, Now: now,
		Ready: d.limiter.Ready,
	}
	if options != nil {
		options(&o)
	}
	server := must(api.New(o))(t)
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	d.URL = "http://" + listener.Addr().String()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return d
}

// sent puts sends on record, each so long ago; the oldest first.
func (d *desk) sent(mailbox string, ago ...time.Duration) {
	d.t.Helper()
	for _, past := range ago {
		d.ahead.Store(-past.Milliseconds())
		if v := must(d.limiter.Take(context.Background(), mailbox, throttle.NewID()))(d.t); !v.Allowed {
			d.t.Fatalf("the send %v ago was refused", past)
		}
	}
	d.ahead.Store(0)
}

// A breakable is a limiter whose store can be made to fail.
type breakable struct {
	throttle.Surveyor
	broken *atomic.Bool
}

func (b *breakable) Peek(ctx context.Context, key string) (throttle.Verdict, error) {
	if b.broken.Load() {
		return throttle.Verdict{}, throttle.ErrUnavailable
	}
	return b.Surveyor.Peek(ctx, key)
}

// must gives a value, or ends the test with its error.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
