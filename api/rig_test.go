package api_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate"
	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/cache"
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
	"github.com/prometheus/client_golang/prometheus"
)

const (
	appKey = "the-key-of-an-application"
	opsKey = "the-key-of-an-operator"
)

// rig is a server on a free port, with a real limiter and a real relay behind it.
// What goes through its client is held against openapi.yaml.
type rig struct {
	t       testing.TB
	server  *api.Server
	options api.Options
	url     string
	addr    string
	client  *http.Client
	box     *sandbox.Server // nil under a relay of faults
	limiter *local.Limiter  // the mailbox's
	store   *cache.Store
	codes   *broken // the records of codes
	keys    *broken // the records of Idempotency-Keys
	now     *atomic.Int64
	served  chan error
}

// setup is what a test changes.
type setup struct {
	options func(*api.Options)
	relay   *fault.Script // a relay of faults in place of the sandbox
	mailer  relay.Options
	policy  string
	dir     string // of the stores; in memory, if empty
	// rules are those beside the mailbox's own, which it may change.
	rules   func(r *rig, own *rules.Rule) []rules.Rule
	actions func(r *rig) map[string]throttle.Limiter
	alone   bool // not beside other tests

	read, idle time.Duration // in place of the server's timeouts
}

var besides sync.Map // the tests that run beside others

// newRig starts a server. Its test runs beside the others, unless it is to be alone.
func newRig(t testing.TB, with setup) *rig {
	t.Helper()
	if test, ok := t.(*testing.T); ok && !with.alone {
		if _, already := besides.LoadOrStore(test, true); !already {
			test.Parallel()
		}
	}
	r := &rig{t: t, now: new(atomic.Int64), served: make(chan error, 1)}
	r.now.Store(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMilli())
	r.openStores(with.dir, cmp.Or(with.policy, throttle.DefaultPolicy().String()))
	registry := prometheus.NewRegistry()
	with.mailer.Hooks = api.RelayHooks(registry)
	relays := r.newRelays(with)
	o := api.Options{
		Live: r.live(with), Relay: delivery.FromRelays(relays),
		Identity:   must(address.NewIdentity(true))(t),
		APIKeys:    must(api.ParseKeys("shop:" + appKey + ",blog:another-key"))(t),
		AdminKeys:  must(api.ParseKeys("alex:" + opsKey))(t),
		RelayStats: relays.Stats, Metrics: registry,
		Log: journal.logger(), Audit: journal.logger(),
		OpenAPI: mailgate.OpenAPI, Version: "dev",
		Now: r.now.Load, Ready: r.store.Ready, DegradedSince: func() int64 { return 0 },
		SendDeadline: 15 * time.Second, StoreTimeout: 2 * time.Second, MaxConnections: 10_000,
		Secret:  []byte(theSecret),
		Guesses: r.tiers("guesses", "ten-minutes=5/10m,day=20/24h"),
		Lookups: plenty(t, r.now.Load), Countdowns: plenty(t, r.now.Load),
	}
	o.Requests = idempotency.New(r.keys, lease)
	if with.options != nil {
		with.options(&o)
	}
	o.Codes = must(verify.New(verify.Options{Store: r.codes, Secret: []byte(theSecret), Guesses: o.Guesses, Log: journal.logger()}))(t) // by the guesses of the test
	r.options = o
	r.server = must(api.New(o))(t)
	r.server.SetTimeouts(with.read, with.idle)
	r.serve()
	return r
}

// plenty is a limiter that refuses nothing.
func plenty(t testing.TB, now func() int64) throttle.Limiter {
	t.Helper()
	return inMemory(must(throttle.NewTokenBucket(tier("plenty", 1_000_000, 1000), 1_000_000))(t), now)
}

func (r *rig) serve() {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(r.t)
	r.addr = listener.Addr().String()
	r.url = "http://" + r.addr
	go func() { r.served <- r.server.Serve(listener) }()
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}
	r.client = &http.Client{Transport: recorder{r.t, transport}, Timeout: 30 * time.Second}
	r.t.Cleanup(func() {
		transport.CloseIdleConnections()
		r.shutdown()
	})
}

// shutdown may be called by a test, and is called after it.
func (r *rig) shutdown() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := r.server.Shutdown(ctx); err != nil {
		r.t.Errorf("Shutdown: %v", err)
	}
}

func (r *rig) newRelays(with setup) *relay.Relays {
	url := ""
	if with.relay != nil {
		relay := must(fault.Start(*with.relay))(r.t)
		r.t.Cleanup(func() { relay.Close() })
		url = "smtp://" + relay.Addr() + "?tls=none"
	} else {
		r.box = must(sandbox.Start(sandbox.Options{KeepMessages: 100_000, KeepBytes: 1 << 30}))(r.t)
		r.t.Cleanup(func() { r.box.Close() })
		url = r.box.URL()
	}
	relays := must(relay.New([]relay.URL{must(relay.ParseURL(url))(r.t)}, with.mailer))(r.t)
	r.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		relays.Close(ctx)
	})
	return relays
}

const theSecret = "a secret of the tests"

func (r *rig) openStores(dir, policy string) {
	r.t.Helper()
	r.store = must(cache.Open(cache.Options{Dir: dir, Now: r.now.Load}))(r.t)
	r.t.Cleanup(func() { r.store.Close() })
	r.limiter = r.tiers("mailboxes", policy)
	r.codes = newBroken(r.store.Table("codes"), r.now.Load)
	r.keys = newBroken(r.store.Table("requests"), r.now.Load)
}

// counted is a limiter on the rig's store. One of the same name and form shares its records.
func (r *rig) counted(name string, a throttle.Algorithm) *local.Limiter {
	return local.New(r.store.Table(name), a, r.now.Load)
}

// tiers is counted by a policy.
func (r *rig) tiers(name, policy string) *local.Limiter {
	return r.counted(name, must(throttle.ParsePolicy(policy))(r.t))
}

// inMemory is a limiter on a store of its own.
func inMemory(a throttle.Algorithm, now func() int64) *local.Limiter {
	store, err := cache.Open(cache.Options{Now: now})
	if err != nil {
		panic(err)
	}
	return local.New(store.Table("limiter"), a, now)
}

// How long a key is in flight and its answer kept, in milliseconds.
const (
	lease = 30_000
	day   = 86_400_000
)

// live is the configuration of a setup.
func (r *rig) live(with setup) api.Live {
	r.t.Helper()
	own := rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: r.limiter}
	var more []rules.Rule
	if with.rules != nil {
		more = with.rules(r, &own)
	}
	live := api.Live{Rules: ruleSet(r.t, append(more, own)...), Composer: composerWith(r.t, nil)}
	if with.actions != nil {
		live.Actions = with.actions(r)
	}
	return live
}

// ruleSet makes the set, and finds out which limiters are exact.
func ruleSet(t testing.TB, all ...rules.Rule) *rules.Set {
	t.Helper()
	for i := range all {
		if h, ok := all[i].Limiter.(throttle.Historian); ok {
			_, err := h.History(context.Background(), "x")
			all[i].Exact = !errors.Is(err, errors.ErrUnsupported)
		}
	}
	return must(rules.New(rules.Options{}, all...))(t)
}

// onlyMailbox are the rules of a mailbox alone, by this policy on the histories of a table.
func (r *rig) onlyMailbox(table, policy string) *rules.Set {
	r.t.Helper()
	return ruleSet(r.t, rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: r.tiers(table, policy)})
}

// composerWith is a composer with these templates beside the built-in ones.
func composerWith(t testing.TB, own fs.FS) *message.Composer {
	t.Helper()
	from := must(message.ParseSender("Acme <no-reply@acme.example>"))(t)
	return must(message.NewComposer(from, must(message.LoadTemplates(own, "en"))(t)))(t)
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

// reply is a whole answer.
type reply struct {
	status int
	header http.Header
	text   string
	body   map[string]any
}

// do sends one request with a key; "" for none. A body is sent as JSON.
func (r *rig) do(method, path, key, body string) reply {
	r.t.Helper()
	header := http.Header{}
	if key != "" {
		header.Set("Authorization", "Bearer "+key)
	}
	if body != "" {
		header.Set("Content-Type", "application/json")
	}
	return r.request(method, path, header, body)
}

func (r *rig) request(method, path string, header http.Header, body string) reply {
	r.t.Helper()
	request := must(http.NewRequest(method, r.url+path, strings.NewReader(body)))(r.t)
	request.Header = header
	response, err := r.client.Do(request)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	return readReply(r.t, response)
}

func readReply(t testing.TB, response *http.Response) reply {
	t.Helper()
	text := must(io.ReadAll(response.Body))(t)
	got := reply{status: response.StatusCode, header: response.Header, text: string(text)}
	if strings.HasSuffix(response.Header.Get("Content-Type"), "json") && response.Request.Method != "HEAD" {
		if err := json.Unmarshal(text, &got.body); err != nil {
			t.Errorf("the answer is no JSON: %v: %s", err, text)
		}
	}
	return got
}

// send asks for a code to be mailed.
func (r *rig) send(email string) reply {
	r.t.Helper()
	return r.do("POST", "/send-code", appKey, `{"email":`+quote(email)+`}`)
}

func quote(text string) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.Encode(text)
	return strings.TrimSpace(b.String())
}

// used is how many sends the longest tier has on record.
func (r *rig) used(email string) int {
	r.t.Helper()
	address := must(address.Parse(email, must(address.NewIdentity(true))(r.t)))(r.t)
	return len(must(r.limiter.History(context.Background(), address.Key()))(r.t))
}

// charged fails the test unless the mailbox has so many sends on record.
func (r *rig) charged(email string, want int) {
	r.t.Helper()
	if n := r.used(email); n != want {
		r.t.Errorf("%s has %d sends on record, want %d", email, n, want)
	}
}

// sent fails the test unless so many emails were sent.
func (r *rig) sent(want int) {
	r.t.Helper()
	if n := len(r.box.List()); n != want {
		r.t.Errorf("%d emails were sent, want %d", n, want)
	}
}

type fields = map[string]any

// says fails the test unless the answer has these fields; nil stands for null and for none.
func (got reply) says(t testing.TB, want fields) {
	t.Helper()
	for name, value := range want {
		if got.body[name] != value {
			t.Errorf("%s is %v, want %v: %s", name, got.body[name], value, got.text)
		}
	}
}

// reads fails the test unless the answer has this text.
func (got reply) reads(t testing.TB, want string) {
	t.Helper()
	if got.text != want {
		t.Errorf("answered %d\n%s, want\n%s", got.status, got.text, want)
	}
}

// logged fails the test unless the log has one line about the answer, with these fields; nil stands
// for none.
func (got reply) logged(t testing.TB, want fields) {
	t.Helper()
	lines := journal.about(t, got.header.Get("X-Request-Id"))
	if len(lines) != 1 {
		t.Fatalf("the log says %v", lines)
	}
	for name, value := range want {
		if lines[0][name] != value {
			t.Errorf("%s is %v in the log, want %v: %v", name, lines[0][name], value, lines[0])
		}
	}
}

// is fails the test unless the answer has this status and, as a problem, this name.
func (got reply) is(t testing.TB, status int, name string) {
	t.Helper()
	problem, _ := got.body["type"].(string)
	if i := strings.LastIndexAny(problem, ":#"); i >= 0 {
		problem = problem[i+1:]
	}
	if got.status != status || problem != name {
		t.Fatalf("answered %d %q, want %d %q: %s", got.status, problem, status, name, got.text)
	}
}

// The second byte of the record of a key is its state.
const (
	begun      = 2
	handedOver = 3
	answered   = 4
)

// broken is a store of records that fails on demand.
type broken struct {
	keyed.Store
	table *cache.Table
	now   func() int64

	closed  atomic.Bool  // all steps fail
	refused atomic.Int32 // steps to this state fail; 0 for none
	alone   bool         // other nodes cannot be asked
}

var errKeys = fmt.Errorf("%w: dial tcp 10.1.2.3:6379: connection refused", throttle.ErrUnavailable)

func (b *broken) Update(ctx context.Context, key string, step keyed.Step) (bool, error) {
	to := byte(0)
	if old, err := b.table.Get(ctx, key); err == nil {
		if next, _ := step(old, b.now()); len(next) > 1 {
			to = next[1]
		}
	}
	if b.closed.Load() || to != 0 && int32(to) == b.refused.Load() {
		return false, errKeys
	}
	_, err := b.Store.Update(ctx, key, step)
	return b.alone, err
}

func newBroken(table *cache.Table, now func() int64) *broken {
	return &broken{Store: keyed.Local(table, now), table: table, now: now}
}
