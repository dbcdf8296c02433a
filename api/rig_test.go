package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

const (
	appKey = apitest.APIKey
	opsKey = apitest.AdminKey
	lease  = apitest.Lease
	day    = 86_400_000
)

// rig is a server with a real limiter and a real relay behind it, and a clock that stands still. What
// goes through its client is held against openapi.yaml.
type rig struct {
	*apitest.Server
	t      testing.TB
	client *http.Client
	codes  *broken // the records of codes
	keys   *broken // the records of Idempotency-Keys
	now    *atomic.Int64
}

// setup is what a test changes.
type setup struct {
	options func(*apitest.Options)
	relay   *fault.Script // a relay of faults in place of the sandbox
	policy  string
	dir     string // of the stores; in memory, if empty
	// rules are those beside the mailbox's own, which it may change.
	rules   func(r *rig, own *rules.Rule) []rules.Rule
	actions func(r *rig) map[string]*throttle.Limiter
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
	r := &rig{t: t, now: new(atomic.Int64)}
	r.now.Store(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMilli())
	r.Server = apitest.New(apitest.Setup{Dir: with.dir, Now: r.now.Load, Faults: with.relay, Change: func(s *apitest.Server, o *apitest.Options) {
		r.Server = s
		if with.policy != "" {
			s.Mailboxes = r.tiers("mailboxes", with.policy)
		}
		r.codes, r.keys = &broken{Store: s.Codes}, &broken{Store: s.Requests}
		s.Codes, s.Requests = r.codes, r.keys
		o.Live.Rules, o.Live.Actions = r.rules(with), nil
		if with.actions != nil {
			o.Live.Actions = with.actions(r)
		}
		o.Log, o.Audit.Log = journal.logger(), journal.logger()
		if with.options != nil {
			with.options(o)
		}
	}})
	t.Cleanup(func() { r.Close() }) // whose stores a test may have closed
	r.API.SetTimeouts(with.read, with.idle)
	r.Serve()
	r.connect()
	return r
}

// connect makes the client. The server is shut down before what it works with is closed.
func (r *rig) connect() {
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}
	r.client = &http.Client{Transport: recorder{r.t, transport}, Timeout: 2 * time.Minute}
	r.t.Cleanup(func() {
		transport.CloseIdleConnections()
		r.shutdown()
	})
}

// shutdown may be called by a test, and is called after it.
func (r *rig) shutdown() {
	r.t.Helper()
	if err := r.Shutdown(); err != nil {
		r.t.Errorf("Shutdown: %v", err)
	}
}

// another is a second server on the same stores and relay.
func (r *rig) another() *rig {
	r.t.Helper()
	next := *r
	next.Server = r.Another()
	next.connect()
	return &next
}

// counted is a limiter on the rig's store. One of the same name and form shares its records.
func (r *rig) counted(name string, a throttle.Algorithm) *throttle.Limiter {
	return local.New(r.Store.Table(name), a)
}

// tiers is counted by a policy.
func (r *rig) tiers(name, policy string) *throttle.Limiter {
	return r.counted(name, must.Get(throttle.ParsePolicy(policy))(r.t))
}

// rules are the mailbox's own and those of a setup.
func (r *rig) rules(with setup) *rules.Set {
	r.t.Helper()
	own := rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: r.Mailboxes}
	var more []rules.Rule
	if with.rules != nil {
		more = with.rules(r, &own)
	}
	return ruleSet(r.t, append(more, own)...)
}

// ruleSet makes the set.
func ruleSet(t testing.TB, all ...rules.Rule) *rules.Set {
	t.Helper()
	return must.Get(rules.New(rules.Options{}, all...))(t)
}

// onlyMailbox are the rules of a mailbox alone, by this policy on the histories of a table.
func (r *rig) onlyMailbox(table, policy string) *rules.Set {
	r.t.Helper()
	return ruleSet(r.t, rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: r.tiers(table, policy)})
}

// composerWith is a composer with these templates beside the built-in ones.
func composerWith(t testing.TB, own fs.FS) *message.Composer {
	t.Helper()
	from := must.Get(message.ParseSender("Acme <no-reply@acme.example>"))(t)
	return must.Get(message.NewComposer(from, must.Get(message.LoadTemplates(own, "en"))(t)))(t)
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
	request := must.Get(http.NewRequest(method, r.URL+path, strings.NewReader(body)))(r.t)
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
	text := must.Get(io.ReadAll(response.Body))(t)
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
	address := must.Get(address.Parse(email, must.Get(address.NewIdentity(true))(r.t)))(r.t)
	return len(must.Get(r.Mailboxes.History(context.Background(), address.Key()))(r.t))
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
	if n := len(r.Relay.List()); n != want {
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

// contains fails the test unless the answer has these texts in it.
func (got reply) contains(t testing.TB, want ...string) {
	t.Helper()
	for _, text := range want {
		if !strings.Contains(got.text, text) {
			t.Errorf("answered %d\n%s, without\n%s", got.status, got.text, text)
		}
	}
}

// hides fails the test if the answer has one of these texts in it.
func (got reply) hides(t testing.TB, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(got.text, text) {
			t.Errorf("the answer gives away %q: %s", text, got.text)
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

// something stands for any value of a field.
const something = "something"

// logged fails the test unless the log has these lines about the answer, each with these fields; nil
// stands for none. It returns the lines.
func (got reply) logged(t testing.TB, want ...fields) []map[string]any {
	t.Helper()
	lines := journal.about(t, got.header.Get("X-Request-Id"))
	if len(lines) != len(want) {
		t.Fatalf("the log says %v", lines)
	}
	for i, line := range lines {
		for name, value := range want[i] {
			if line[name] != value && (value != something || line[name] == nil) {
				t.Errorf("%s is %v in the log, want %v: %v", name, line[name], value, line)
			}
		}
	}
	return lines
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
	closed  atomic.Bool  // all steps fail
	refused atomic.Int32 // steps to this state fail; 0 for none
	alone   bool         // other nodes cannot be asked
}

func (b *broken) Update(ctx context.Context, key string, step keyed.Step) (bool, error) {
	fails := false
	_, err := b.Store.Update(ctx, key, func(old []byte, now int64) ([]byte, int64) {
		next, expires := step(old, now)
		fails = b.closed.Load() || len(next) > 1 && next[1] != 0 && int32(next[1]) == b.refused.Load()
		if fails {
			return old, expires // the value stays
		}
		return next, expires
	})
	if fails {
		err = throttletest.ErrFault
	}
	return b.alone, err
}
