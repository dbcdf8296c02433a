package web_test

import (
	"context"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate"
	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/api/web"
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cmd/mailgate/demo"
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
)

const (
	opsKey = "the-key-of-an-operator"
	appKey = "the-key-of-an-application"
)

// sixDigits are a code in a mail.
var sixDigits = regexp.MustCompile(`\b\d{6}\b`)

// A desk is a whole server, as operators and visitors meet it, with the pages of mailgate
// dev in front.
type desk struct {
	t       *testing.T
	URL     string
	limiter throttle.Historian
	box     *sandbox.Server
	ahead   atomic.Int64 // how far its clock is ahead of the machine's, in milliseconds
	broken  atomic.Bool  // whether the store is
	end     func()       // of whoever follows the inbox
	front   atomic.Pointer[http.Handler]
}

// newDesk starts a server that keeps what it knows on disk; options may change what it
// works with.
func newDesk(t *testing.T, options func(*api.Options)) *desk {
	t.Helper()
	d := &desk{t: t}
	store := must(cache.Open(cache.Options{Now: d.now}))(t)
	t.Cleanup(func() { store.Close() })
	d.limiter = local.New(store.Table("mailboxes"), throttle.DefaultPolicy(), d.now)
	return d.open(store, options)
}

// now is the desk's clock.
func (d *desk) now() int64 { return time.Now().UnixMilli() + d.ahead.Load() }

func (d *desk) open(store *cache.Store, options func(*api.Options)) *desk {
	t := d.t
	t.Helper()
	set := must(rules.New(rules.Options{}, rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: &breakable{d.limiter, &d.broken}, Exact: true}))(t)
	d.box = must(sandbox.Start(sandbox.Options{}))(t)
	t.Cleanup(func(box *sandbox.Server) func() { return func() { box.Close() } }(d.box))
	relays := must(relay.New([]relay.URL{must(relay.ParseURL(d.box.URL()))(t)}, relay.Options{}))(t)
	t.Cleanup(func() { relays.Close(context.Background()) })
	templates := must(message.LoadTemplates(nil, "en"))(t)
	composer := must(message.NewComposer(must(message.ParseSender("Acme <no-reply@acme.example>"))(t), templates))(t)
	guesses := local.New(store.Table("guesses"), verify.DefaultGuesses(), d.now)
	secret := []byte("a secret that is hard to guess")
	codes := must(verify.New(verify.Options{Store: keyed.Local(store.Table("codes"), d.now), Secret: secret, Guesses: guesses}))(t)
	requests := must(idempotency.New(idempotency.Options{Store: keyed.Local(store.Table("requests"), d.now)}))(t)
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	d.URL = "http://" + listener.Addr().String()
	o := api.Options{
		Live: api.Live{Rules: set, Composer: composer}, Relay: delivery.FromRelays(relays), RelayStats: relays.Stats,
		Identity: must(address.NewIdentity(true))(t),
		APIKeys:  must(api.ParseKeys("shop:" + appKey))(t), AdminKeys: must(api.ParseKeys("alex:" + opsKey))(t),
		Codes: codes, Guesses: guesses, Requests: requests, Ready: store.Ready,
		Fallback: d.pages(), OpenAPI: mailgate.OpenAPI, Now: d.now,
	}
	if options != nil {
		options(&o)
	}
	d.serve(must(api.New(o))(t), listener)
	return d
}

// pages are those of mailgate dev.
func (d *desk) pages() http.Handler {
	d.draw()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*d.front.Load()).ServeHTTP(w, r) })
}

func (d *desk) draw() {
	ended, end := context.WithCancel(context.Background())
	d.end = end
	front := demo.New(demo.Options{
		Address: strings.TrimPrefix(d.URL, "http://"), APIKey: appKey, AdminKey: opsKey,
		Relay: d.box, Pages: web.FS(), Ended: ended,
	})
	d.front.Store(&front)
}

// startsAnew gives the pages an inbox that knows of no mail, as of another process.
func (d *desk) startsAnew() {
	d.t.Helper()
	d.box = must(sandbox.Start(sandbox.Options{}))(d.t)
	d.t.Cleanup(func() { d.box.Close() })
	end := d.end
	d.draw()
	end()
}

func (d *desk) serve(server *api.Server, listener net.Listener) {
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	d.t.Cleanup(func() {
		d.end() // whoever follows the inbox would hold the server up
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			d.t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; err != nil {
			d.t.Errorf("Serve: %v", err)
		}
	})
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

// mailed has a code mailed, so long ago.
func (d *desk) mailed(mailbox string, ago time.Duration) {
	d.t.Helper()
	d.ahead.Store(-ago.Milliseconds())
	defer d.ahead.Store(0)
	if status := d.post("/send-code", `{"email":"`+mailbox+`"}`); status != 200 {
		d.t.Fatalf("no code was mailed: %d", status)
	}
}

// guessed has so many wrong codes typed for a mailbox that has one, and returns the status
// of the last answer.
func (d *desk) guessed(mailbox string, times int) (status int) {
	d.t.Helper()
	for range times {
		status = d.post("/verify-code", `{"email":"`+mailbox+`","code":"000000"}`)
	}
	return status
}

// post asks as an application does; header is a name and a value, if there is one more.
func (d *desk) post(path, body string, header ...string) (status int) {
	d.t.Helper()
	question := must(http.NewRequest("POST", d.URL+path, strings.NewReader(body)))(d.t)
	if len(header) > 0 {
		question.Header.Set(header[0], header[1])
	}
	question.Header.Set("Authorization", "Bearer "+appKey)
	question.Header.Set("Content-Type", "application/json")
	answer := must(http.DefaultClient.Do(question))(d.t)
	answer.Body.Close()
	return answer.StatusCode
}

// A breakable is a limiter whose store can be made to fail.
type breakable struct {
	throttle.Historian
	broken *atomic.Bool
}

func (b *breakable) Peek(ctx context.Context, key string) (throttle.Verdict, error) {
	if b.broken.Load() {
		return throttle.Verdict{}, throttle.ErrUnavailable
	}
	return b.Historian.Peek(ctx, key)
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
