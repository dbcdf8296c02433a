package submission_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/apikey"
	"github.com/mailgate/mailgate/internal/idempotency"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/recent"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/internal/verify"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/proof"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/submission"
	"github.com/mailgate/mailgate/suppression"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// rig is a door with its own records and a relay that misbehaves on command.
type rig struct {
	*submission.Server
	t            testing.TB
	addr         string
	relay        *fault.Server
	faults       *throttletest.Faulty // of mailbox
	mailbox      *throttle.Limiter
	log          *servertest.Log
	metrics      *prometheus.Registry
	ledger       *ledger.Ledger
	roots        *tls.Config
	suppressions *suppression.List
	ahead        atomic.Int64 // milliseconds that the clock of the records is ahead
}

// setup changes a rig before it starts.
type setup struct {
	script   fault.Script
	options  func(*submission.Options)
	hurry    func(*submission.Times) // changes the times of the product
	public   bool                    // not of this machine: TLS is needed
	implicit bool
	tiers    string
	more     func(counted func(throttle.Algorithm) *throttle.Limiter) []rules.Rule // beside that of the mailbox
}

const (
	appSecret = "app-secret-0123456789"
	lateKey   = "late"
)

func start(t testing.TB, with setup) *rig {
	t.Helper()
	r := &rig{t: t, log: &servertest.Log{}, metrics: prometheus.NewRegistry()}
	r.relay = fault.Run(t, with.script)
	urls := []relay.URL{must.Get(relay.ParseURL(r.relay.URL()))(t)}
	relays := must.Get(relay.New(urls, relay.Options{}))(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		relays.Close(ctx)
	})
	now := func() int64 { return time.Now().UnixMilli() + r.ahead.Load() }
	store := must.Get(cache.Open(cache.Options{Now: now}))(t)
	t.Cleanup(func() { store.Close() })
	log := slog.New(slog.NewTextHandler(r.log, nil))
	tiers := with.tiers
	if tiers == "" {
		tiers = "minute=1/60s,hour=5/1h"
	}
	r.faults = &throttletest.Faulty{}
	r.mailbox = r.faults.Break(local.New(store.Table("mailbox"), must.Get(throttle.ParsePolicy(tiers))(t)))
	all := []rules.Rule{{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: r.mailbox}}
	if with.more != nil {
		all = append(all, with.more(func(a throttle.Algorithm) *throttle.Limiter { return local.New(store.Table("more"), a) })...)
	}
	set := must.Get(rules.New(rules.Options{}, all...))(t)
	r.suppressions = must.Get(suppression.Open(t.Context(), suppression.Options{Table: store.Table("suppressions"), Events: store.Table("events"), Now: now}))(t)
	t.Cleanup(r.suppressions.Close)
	proofs := must.Get(proof.New(nil, bytes.Repeat([]byte("s"), 32)))(t)
	service := delivery.New(delivery.Options{
		Proofs: proofs,
		Relay:  relays, StoreTimeout: time.Second, Now: now, Log: log,
		Codes:        must.Get(verify.New(verify.Options{Store: keyed.Local(store.Table("codes")), Secret: bytes.Repeat([]byte("s"), 32)}))(t),
		Suppressions: r.suppressions, Passes: local.New(store.Table("passes"), must.Get(throttle.ParsePolicy("day=1/24h"))(t)),
		Metrics: delivery.NewMetrics(prometheus.NewRegistry()),
	})
	service.Reload(delivery.Live{Rules: set})
	authority := servertest.NewAuthority(t)
	hour := time.Hour.Milliseconds()
	certificate := authority.Certificate(now()-hour, now()+hour, "127.0.0.1")
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority.PEM())
	r.roots = &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}
	r.ledger = ledger.New(ledger.Options{Log: noted{r.log}, Notes: log, Metrics: r.metrics, Now: now})
	o := submission.Options{
		Delivery: service, Proofs: proofs, Identity: must.Get(address.NewIdentity(true))(t),
		Keys:    must.Get(apikey.Parse("app:"+appSecret+","+lateKey+":"+appSecret+"-late", nil))(t),
		Senders: submission.Senders{"no-reply@acme.example", "@news.acme.example"}, Defer: []string{lateKey},
		Repeats: idempotency.New(keyed.Local(store.Table("emails")), 30_000), Domain: "acme.example", MaxBytes: 1 << 20, MaxConnections: 100,
		TLS: &tls.Config{Certificates: []tls.Certificate{certificate}},
		Log: log, Now: now, WrongKeys: local.New(store.Table("wrong-keys"), must.Get(throttle.NewTokenBucket(throttle.Tier{Name: "per-second", Limit: 1000, Window: time.Second}, 4000))(t)),
		Ledger: r.ledger,
	}
	if with.options != nil {
		with.options(&o)
	}
	r.Server = submission.New(o)
	if with.hurry != nil {
		r.Hurry(with.hurry)
	}
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	r.addr = listener.Addr().String()
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := r.Serve(listener, !with.public, with.implicit); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := r.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		serving.Wait()
		service.Close(ctx)
	})
	return r
}

// charged is how many emails a mailbox is charged in the hour.
func (r *rig) charged(mailbox string, want int) {
	r.t.Helper()
	v := must.Get(r.mailbox.Peek(context.Background(), mailbox))(r.t)
	if got := v.Sent; got != want {
		r.t.Errorf("%s is charged %d emails, want %d", mailbox, got, want)
	}
}

// eventuallyCharged waits for a refund.
func (r *rig) eventuallyCharged(mailbox string, want int) {
	r.t.Helper()
	servertest.Eventually(r.t, fmt.Sprintf("%s is charged %d", mailbox, want), func() bool {
		v, err := r.mailbox.Peek(context.Background(), mailbox)
		return err == nil && v.Sent == want
	})
}

func (r *rig) sent(want int) {
	r.t.Helper()
	n := 0
	for _, mail := range r.relay.Mails() {
		if !mail.Refused {
			n++
		}
	}
	if n != want {
		r.t.Errorf("the relay took %d emails, want %d", n, want)
	}
}

// client is one connection that a test writes and reads line by line.
type client struct {
	net.Conn
	t   testing.TB
	in  *bufio.Reader
	rig *rig
}

// dial connects and reads the greeting.
func (r *rig) dial() *client {
	r.t.Helper()
	c := r.connect()
	c.reads("220 acme.example")
	return c
}

func (r *rig) connect() *client {
	r.t.Helper()
	socket := must.Get(net.Dial("tcp", r.addr))(r.t)
	r.t.Cleanup(func() { socket.Close() })
	must.OK(r.t, socket.SetDeadline(time.Now().Add(time.Minute)))
	return &client{Conn: socket, t: r.t, in: bufio.NewReader(socket), rig: r}
}

// signedIn connects as a key.
func (r *rig) signedIn() *client {
	r.t.Helper()
	c := r.dial()
	c.says("EHLO client.example", "250")
	c.says("AUTH PLAIN "+plain("app", appSecret), "235 2.7.0")
	return c
}

func plain(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte("\x00" + user + "\x00" + password))
}

// says writes a line and reads the reply, which must start so.
func (c *client) says(line, want string) string {
	c.t.Helper()
	c.write(line + "\r\n")
	return c.reads(want)
}

func (c *client) write(text string) {
	c.t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		c.t.Fatalf("writing %.40q: %v", text, err)
	}
}

// reads reads a whole reply, whose last line must start so.
func (c *client) reads(want string) string {
	c.t.Helper()
	var all string
	for {
		line, err := c.in.ReadString('\n')
		all += line
		if err != nil {
			c.t.Fatalf("read %q and %v, want %s", all, err, want)
		}
		if len(line) > 3 && line[3] == ' ' {
			if !strings.HasPrefix(line, want) {
				c.t.Errorf("read %q, want %s", all, want)
			}
			return all
		}
	}
}

// ends checks that the server closes the connection.
func (c *client) ends() {
	c.t.Helper()
	if rest, err := c.in.ReadString('\n'); err == nil {
		c.t.Errorf("read %q, want the end", rest)
	}
}

// to begins an email to these recipients.
func (c *client) to(recipients ...string) {
	c.t.Helper()
	c.says("MAIL FROM:<no-reply@acme.example>", "250")
	for _, one := range recipients {
		c.says("RCPT TO:<"+one+">", "250")
	}
}

const letter = "From: Acme <no-reply@acme.example>\r\nTo: alice@example.com\r\nSubject: code\r\nMessage-ID: <1@acme.example>\r\n\r\n123456\r\n..dots\r\n"

// data sends a text, whose dots are stuffed, and reads the answer.
func (c *client) data(text, want string) string {
	c.t.Helper()
	c.says("DATA", "354")
	c.write(text + ".\r\n")
	return c.reads(want)
}

// secure says STARTTLS.
func (c *client) secure() {
	c.t.Helper()
	c.says("STARTTLS", "220 2.0.0")
	encrypted := tls.Client(c.Conn, c.rig.roots)
	must.OK(c.t, encrypted.Handshake())
	c.Conn, c.in = encrypted, bufio.NewReader(encrypted)
}

func (r *rig) encrypt(socket net.Conn) (net.Conn, *bufio.Reader) {
	encrypted := tls.Client(socket, r.roots)
	return encrypted, bufio.NewReader(encrypted)
}

func base(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// counted fails unless the ledger has counted so many emails of an outcome.
func (r *rig) counted(outcome string, want float64) {
	r.t.Helper()
	got := 0.0
	for _, family := range must.Get(r.metrics.Gather())(r.t) {
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if family.GetName() == "mailgate_sends_total" && l.GetName() == "outcome" && l.GetValue() == outcome {
					got += m.GetCounter().GetValue()
				}
			}
		}
	}
	if got != want {
		r.t.Errorf("%v of outcome %s are counted, want %v", got, outcome, want)
	}
}

// shown returns what operators are shown of the emails of an outcome.
func (r *rig) shown(outcome string) (entries []string) {
	for entry := range r.ledger.Recent.All(0, r.ledger.Recent.Next(), recent.Filter{Members: map[string]string{"outcome": outcome}}) {
		entries = append(entries, string(entry))
	}
	return entries
}

// noted takes the lines of the ledger into a log.
type noted struct{ *servertest.Log }

// Enabled implements ledger.Log.
func (noted) Enabled(slog.Level) bool { return true }

// Line implements ledger.Log.
func (n noted) Line(o *ledger.Outcome, line []byte) {
	fmt.Fprintf(n, "outcome=%s %s", o.What.Word, line)
}
