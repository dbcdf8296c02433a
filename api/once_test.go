package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
)

// once sends with an Idempotency-Key, as it stands in the header.
func (r *rig) once(key, email string) reply {
	r.t.Helper()
	return r.onceAs(appKey, key, `{"email":`+quote(email)+`}`)
}

func (r *rig) onceAs(caller, key, body string) reply {
	r.t.Helper()
	return r.request("POST", "/send-code", http.Header{
		"Authorization": {"Bearer " + caller}, "Content-Type": {"application/json"}, "Idempotency-Key": {key},
	}, body)
}

// again fails the test unless the answer is the first one, byte for byte.
func (got reply) again(t testing.TB, first reply) {
	t.Helper()
	if got.status != first.status || got.text != first.text || got.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the answer again is %d %v %s\nthe first is %d %s", got.status, got.header, got.text, first.status, first.text)
	}
	for _, name := range []string{"Content-Type", "RateLimit", "RateLimit-Policy", "Retry-After", "Cache-Control"} {
		if got.header.Get(name) != first.header.Get(name) {
			t.Errorf("%s is %q, and was %q", name, got.header.Get(name), first.header.Get(name))
		}
	}
	if first.header.Get("Idempotent-Replayed") != "" || got.header.Get("X-Request-Id") == first.header.Get("X-Request-Id") {
		t.Errorf("the headers are %v, and were %v", got.header, first.header)
	}
}

// The same key and body are one mail, one charge and one answer for a day, however the
// key is written; then the key is as good as new.
func TestOnce(t *testing.T) {
	r := newRig(t, setup{})
	first := r.once(`"click-1"`, "once@example.com")
	first.is(t, 200, "")
	code := sixDigits.FindString(r.arrived("once@example.com").Text)
	for _, at := range []int64{0, 1, 59_999, 60_000, day - 120_001} {
		r.now.Add(at)
		r.once("click-1", "once@example.com").again(t, first)
		r.once(` "click-1" `, "once@example.com").again(t, first)
	}
	if len(r.box.List()) != 1 || r.used("once@example.com") != 1 {
		t.Errorf("%d mails, %d charged", len(r.box.List()), r.used("once@example.com"))
	}
	lines := journal.about(t, r.once("click-1", "once@example.com").header.Get("X-Request-Id"))
	if len(lines) != 1 || lines[0]["replayed"] != true || strings.Contains(journal.text(), "click-1") {
		t.Errorf("the log says %v", lines)
	}
	if text := r.do("GET", "/metrics", "", "").text; !strings.Contains(text, `mailgate_sends_total{limit="",outcome="replayed",rule=""} 11`+"\n") {
		t.Error("/metrics does not count them")
	}
	r.now.Add(1)
	if r.try("once@example.com", code).status == 200 {
		t.Error("a code was right for a day")
	}
	if said := journal.messages(t, first.header.Get("X-Request-Id")); said != "request\n" {
		t.Errorf("of the first the log says\n%s", said)
	}
	second := r.once("click-1", "once@example.com")
	second.is(t, 200, "")
	if second.body["id"] == first.body["id"] || r.used("once@example.com") != 1 || len(r.box.List()) != 2 {
		t.Errorf("after a day: %s, %d charged", second.text, r.used("once@example.com"))
	}
}

// A key belongs to its caller and to one body, to the byte.
func TestOnceMismatch(t *testing.T) {
	r := newRig(t, setup{})
	const body = `{"email":"mine@example.com"}`
	r.onceAs(appKey, "k", body).is(t, 200, "")
	for _, other := range []string{body + " ", `{"email":"other@example.com"}`, `{"email":"mine@example.com","locale":"zh"}`, `{"email":"mine@example.com","purpose":"sign-up"}`} {
		r.onceAs(appKey, "k", other).is(t, 422, "idempotency-mismatch")
	}
	r.onceAs("another-key", "k", `{"email":"theirs@example.com"}`).is(t, 200, "")
	r.onceAs("another-key", "k", body).is(t, 422, "idempotency-mismatch")
	if r.used("mine@example.com") != 1 || r.used("other@example.com") != 0 || len(r.box.List()) != 2 {
		t.Error("a mismatch was sent or charged")
	}
}

// A double click: the second is told that the first is under way, and then what became
// of it. So is a crowd.
func TestOnceInFlight(t *testing.T) {
	const crowd = 32
	var mails atomic.Int32
	entered, leave := make(chan struct{}), make(chan struct{})
	r := newRig(t, setup{options: func(o *api.Options) {
		o.Relay = fakeSender(func(context.Context, message.Message) error {
			if mails.Add(1) == 1 {
				close(entered)
			}
			<-leave
			return nil
		})
	}})
	first := make(chan reply, 1)
	go func() { first <- r.once("double", "double@example.com") }()
	<-entered
	var clicks sync.WaitGroup
	for range crowd {
		clicks.Go(func() {
			got := r.once("double", "double@example.com")
			if got.status != 409 || got.header.Get("Retry-After") != "1" {
				t.Errorf("answered %d: %s", got.status, got.text)
			}
		})
	}
	clicks.Wait()
	r.once("double", "other@example.com").is(t, 422, "idempotency-mismatch")
	close(leave)
	answered := <-first
	r.once("double", "double@example.com").again(t, answered)
	if mails.Load() != 1 || r.used("double@example.com") != 1 {
		t.Errorf("%d mails, %d charged", mails.Load(), r.used("double@example.com"))
	}
}

// Many at once with one new key are one mail; the others are in flight or the same answer.
func TestOnceRace(t *testing.T) {
	r := newRig(t, setup{})
	var sent sync.Map
	var clicks sync.WaitGroup
	for range 24 {
		clicks.Go(func() {
			if got := r.once("race", "race@example.com"); got.status == 200 {
				sent.Store(got.text, true)
			} else if got.status != 409 {
				t.Errorf("answered %d: %s", got.status, got.text)
			}
		})
	}
	clicks.Wait()
	answers := 0
	sent.Range(func(any, any) bool { answers++; return true })
	if answers != 1 || len(r.box.List()) != 1 || r.used("race@example.com") != 1 {
		t.Errorf("%d answers, %d mails, %d charged", answers, len(r.box.List()), r.used("race@example.com"))
	}
}

// What says "not now", or that the request will not do, leaves the key to be used.
func TestOnceIsNotKept(t *testing.T) {
	r := newRig(t, setup{})
	r.once("k", "no address").is(t, 422, "invalid")
	r.onceAs(appKey, "k", "{").is(t, 400, "bad-request")
	r.send("later@example.com").is(t, 200, "")
	for range 3 {
		r.once("k", "later@example.com").is(t, 429, "quota-exceeded")
	}
	r.now.Add(60_000)
	r.once("k", "later@example.com").is(t, 200, "")
	if r.used("later@example.com") != 2 {
		t.Errorf("%d charged", r.used("later@example.com"))
	}

	for _, step := range []fault.Step{fault.RCPT, fault.Dot} { // before the mark that it may leave, and after
		r = newRig(t, setup{relay: &fault.Script{At: step, Kind: fault.Temporary, Times: 3}})
		for range 3 {
			r.once("k", "relay@example.com").is(t, 503, "relay-unavailable")
		}
		r.once("k", "relay@example.com").is(t, 200, "")
		if r.used("relay@example.com") != 1 {
			t.Errorf("%s: %d charged", step, r.used("relay@example.com"))
		}
	}
}

// What may have left is never sent again, and is answered alike, a 5xx too.
func TestOnceMayHaveLeft(t *testing.T) {
	for _, tt := range []struct {
		name    string
		send    error
		status  int
		problem string
	}{
		{"refused for good", &relay.Error{Outcome: relay.Rejected, Reply: &relay.Reply{Code: 550}}, 422, "recipient-rejected"},
		{"nobody knows", &relay.Error{Outcome: relay.Unknown}, 504, "delivery-unknown"},
		{"a stranger's error", fmt.Errorf("something"), 500, "internal"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var mails int
			r := newRig(t, setup{options: func(o *api.Options) {
				o.Relay = fakeSender(func(context.Context, message.Message) error { mails++; return tt.send })
			}})
			first := r.once("left", "left@example.com")
			first.is(t, tt.status, tt.problem)
			r.now.Add(60_000)
			r.once("left", "left@example.com").again(t, first)
			if mails != 1 || r.used("left@example.com") != 1 {
				t.Errorf("%d mails, %d charged", mails, r.used("left@example.com"))
			}
		})
	}
}

// A server that panics over a mail has perhaps sent it.
func TestOncePanic(t *testing.T) {
	var mails int
	r := newRig(t, setup{options: func(o *api.Options) {
		o.Relay = fakeSender(func(context.Context, message.Message) error { mails++; panic("swordfish") })
	}})
	r.once("panic", "panic@example.com").is(t, 500, "internal")
	r.once("panic", "panic@example.com").is(t, 409, "idempotency-in-flight")
	r.now.Add(lease)
	unknown := r.once("panic", "panic@example.com")
	unknown.is(t, 504, "delivery-unknown")
	if unknown.body["wait_ms"] != 30_000.0 || unknown.body["id"] == nil {
		t.Errorf("answered %s", unknown.text)
	}
	r.once("panic", "panic@example.com").again(t, unknown)
	if mails != 1 || r.used("panic@example.com") != 1 {
		t.Errorf("%d mails, %d charged", mails, r.used("panic@example.com"))
	}
}

// An attempt that stops between its charge and its mail is done by the next, with one
// charge; and if it wakes after all, it sends no second mail.
func TestOnceTakenUp(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	r := newRig(t, setup{options: func(o *api.Options) { o.SendDeadline = time.Minute }})
	var stopped atomic.Bool
	r.keys.stop = func(_ context.Context, to byte) {
		if to == handedOver && !stopped.Swap(true) {
			close(entered)
			<-leave
		}
	}
	first := make(chan reply, 1)
	go func() { first <- r.once("taken", "taken@example.com") }()
	<-entered
	if r.used("taken@example.com") != 1 {
		t.Fatal("it stopped before its charge")
	}
	next := r.another()
	next.once("taken", "taken@example.com").is(t, 409, "idempotency-in-flight")
	r.now.Add(lease)
	sent := next.once("taken", "taken@example.com")
	sent.is(t, 200, "")
	if sent.body["wait_ms"] != 60_000.0 {
		t.Errorf("it does not count from the mail that left: %s", sent.text)
	}
	close(leave)
	(<-first).is(t, 504, "delivery-unknown")
	next.once("taken", "taken@example.com").again(t, sent)
	if len(r.box.List()) != 1 || r.used("taken@example.com") != 1 {
		t.Errorf("%d mails, %d charged", len(r.box.List()), r.used("taken@example.com"))
	}
}

// another is a second server on the same stores and relay.
func (r *rig) another() *rig { return r.anotherAs(func(*api.Options) {}) }

// unanswering is a server that keeps no answers, on the same stores and relay.
func (r *rig) unanswering() *rig {
	keys := r.newKeys(r.store)
	keys.refused.Store(answered)
	return r.anotherAs(func(o *api.Options) { o.Requests = r.newRequests(keys) })
}

func (r *rig) anotherAs(otherwise func(*api.Options)) *rig {
	r.t.Helper()
	next := *r
	next.served = make(chan error, 1)
	o := r.options
	o.Metrics, o.RelayStats = nil, nil
	otherwise(&o)
	next.server = must(api.New(o))(r.t)
	next.serve()
	return &next
}

// Where it is not heard that a key is begun, or that its mail may leave, that is taken back:
// nothing was sent, and a retry gets its mail.
func TestOnceUnheard(t *testing.T) {
	for name, to := range map[string]int32{"begun": begun, "handed over": handedOver} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, setup{})
			r.keys.unheard.Store(to)
			r.once("k", "unheard@example.com").is(t, 503, "store-unavailable")
			r.once("k", "unheard@example.com").is(t, 200, "")
			if len(r.box.List()) != 1 || r.used("unheard@example.com") != 1 {
				t.Errorf("%d mails, %d charged", len(r.box.List()), r.used("unheard@example.com"))
			}
		})
	}
}

// Where what is known of keys cannot be read or written, nothing is sent twice, and
// nothing is charged that was not sent.
func TestOnceUnavailable(t *testing.T) {
	r := newRig(t, setup{})
	const email = "keeper@example.com"
	for _, to := range []int32{begun, handedOver} {
		r.keys.refused.Store(to)
		got := r.once("k", email)
		got.is(t, 503, "store-unavailable")
		if strings.Contains(got.text, "10.1.2.3") || r.used(email) != 0 || len(r.box.List()) != 0 {
			t.Errorf("%d charged, %d mails, answered %s", r.used(email), len(r.box.List()), got.text)
		}
	}
	r.keys.refused.Store(answered)
	sent := r.once("k", email)
	sent.is(t, 200, "")
	r.once("k", email).is(t, 409, "idempotency-in-flight")
	r.keys.refused.Store(0)
	servertest.Eventually(t, "the answer is kept", func() bool { return r.once("k", email).status == 200 })
	r.once("k", email).again(t, sent)
	if r.used(email) != 1 || len(r.box.List()) != 1 {
		t.Errorf("%d charged, %d mails", r.used(email), len(r.box.List()))
	}
}

// Where an answer cannot be kept in time, what is kept is that the mail may have left; the log
// says so.
func TestOnceNeverKept(t *testing.T) {
	r := newRig(t, setup{})
	first, said := r.neverKept()
	first.is(t, 200, "")
	r.once("k", unkept).is(t, 504, "delivery-unknown")
	if r.used(unkept) != 1 || len(r.box.List()) != 1 {
		t.Errorf("%d charged, %d mails", r.used(unkept), len(r.box.List()))
	}
	if !strings.Contains(said, "an answer could not be stored") || !strings.Contains(said, "gets delivery-unknown") {
		t.Errorf("the log says\n%s", said)
	}
}

// unkept is whom neverKept sends to.
const unkept = "unkept@example.com"

// neverKept sends to unkept with the key k, by a server that cannot keep the answer, and goes on
// to the end of the lease. It returns the answer, and what the log says of the request.
func (r *rig) neverKept() (first reply, said string) {
	r.t.Helper()
	dying := r.unanswering()
	first = dying.once("k", unkept)
	dying.shutdown()
	r.once("k", unkept).is(r.t, 409, "idempotency-in-flight")
	r.now.Add(lease)
	return first, journal.messages(r.t, first.header.Get("X-Request-Id"))
}

// As long as a charge is to be given back the key is in flight: a second send would find it,
// and be refused for it where that cannot be given back.
func TestOnceRefundedLater(t *testing.T) {
	r, store := newFailing(t, setup{relay: &fault.Script{At: fault.RCPT, Kind: fault.Temporary, Times: 1}})
	store.release.Store(true)
	r.once("k", "refund@example.com").is(t, 503, "relay-unavailable")
	r.once("k", "refund@example.com").is(t, 409, "idempotency-in-flight")
	store.release.Store(false)
	servertest.Eventually(t, "the key is free", func() bool { return r.once("k", "refund@example.com").status == 200 })
	if r.used("refund@example.com") != 1 {
		t.Errorf("%d charged", r.used("refund@example.com"))
	}
}

// A key that cannot be freed is freed later, also one that is on record as handed over.
func TestOnceFreedLater(t *testing.T) {
	for _, tt := range keysThatStay {
		t.Run(tt.name, func(t *testing.T) {
			r := tt.open(t)
			r.once("k", "freed@example.com").is(t, tt.status, tt.problem)
			r.once("k", "freed@example.com").is(t, 409, "idempotency-in-flight")
			r.keys.refused.Store(0)
			servertest.Eventually(t, "the key is free", func() bool { return r.once("k", "freed@example.com").status != 409 })
			r.now.Add(60_000)
			if got := r.once("k", "freed@example.com"); got.status != 200 {
				t.Errorf("answered %d: %s", got.status, got.text)
			}
		})
	}
}

// The log says what becomes of a key that could not be freed.
func TestOnceNotFreed(t *testing.T) {
	for _, tt := range keysThatStay {
		t.Run(tt.name, func(t *testing.T) {
			r := tt.open(t)
			request := r.once("k", "freed@example.com").header.Get("X-Request-Id")
			r.shutdown()
			said := journal.messages(t, request)
			if !strings.Contains(said, tt.said) || strings.Contains(said, "refunded") {
				t.Errorf("the log says\n%s", said)
			}
		})
	}
}

// keysThatStay are two ways in which the key k of a send to freed@example.com stays in use.
var keysThatStay = []struct {
	name    string
	open    func(*testing.T) *rig
	status  int
	problem string
	said    string
}{
	{"in flight", func(t *testing.T) *rig {
		r := newRig(t, setup{})
		r.send("freed@example.com").is(t, 200, "")
		r.keys.refused.Store(abandoned)
		return r
	}, 429, "quota-exceeded", "a key could not be freed, and is in flight"},
	{"handed over", func(t *testing.T) *rig {
		r := newRig(t, setup{})
		r.keys.unheard.Store(handedOver)
		r.keys.refused.Store(abandoned)
		return r
	}, 503, "store-unavailable", "a retry after that gets delivery-unknown"},
}

func TestOnceKeys(t *testing.T) {
	r := newRig(t, setup{})
	for _, key := range []string{"", `""`, `"a`, `a"`, `a b`, `a,b`, `a;b`, `"a";b=1`, "clé", strings.Repeat("k", 256), `"a", "b"`} {
		r.once(key, "keys@example.com").is(t, 400, "bad-request")
	}
	two := r.request("POST", "/send-code", http.Header{
		"Authorization": {"Bearer " + appKey}, "Content-Type": {"application/json"}, "Idempotency-Key": {"a", "b"},
	}, `{"email":"keys@example.com"}`)
	two.is(t, 400, "bad-request")
	r.once(strings.Repeat("k", 255), "keys@example.com").is(t, 200, "")

	r = newRig(t, setup{options: func(o *api.Options) { o.Requests = nil }})
	r.once("k", "keys@example.com").is(t, 400, "bad-request")
	r.send("keys@example.com").is(t, 200, "")
}
