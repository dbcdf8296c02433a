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
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/servertest"
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

// A key that comes again when its answer is forgotten, but its charge still counts, is
// charged like any other.
func TestOnceInALongWindow(t *testing.T) {
	r := newRig(t, setup{policy: "month=3/720h"})
	for used := 1; used <= 3; used++ {
		r.once("same", "month@example.com").is(t, 200, "")
		if r.used("month@example.com") != used {
			t.Fatalf("%d charged, want %d", r.used("month@example.com"), used)
		}
		r.now.Add(day)
	}
	r.once("same", "month@example.com").is(t, 429, "quota-exceeded")
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
		o.Sender = fakeSender(func(context.Context, message.Message) error {
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

// Where answers and marks are in one place, as in Redis, none is taken for the other.
func TestOnceInOneKeeper(t *testing.T) {
	r := newRig(t, setup{options: func(o *api.Options) { o.Repeats.HandedOver = o.Repeats.Answers }})
	sent := r.once("k", "place@example.com")
	sent.is(t, 200, "")
	r.once("k", "place@example.com").again(t, sent)
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
				o.Sender = fakeSender(func(context.Context, message.Message) error { mails++; return tt.send })
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
		o.Sender = fakeSender(func(context.Context, message.Message) error { mails++; panic("swordfish") })
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

// A stuck keeper holds back whoever begins, until it is let go.
type stuck struct {
	idempotency.Keeper
	entered, leave chan struct{}
}

func (k stuck) Begin(ctx context.Context, name idempotency.Name, body idempotency.Fingerprint) (idempotency.Outcome, error) {
	close(k.entered)
	<-k.leave
	return k.Keeper.Begin(context.WithoutCancel(ctx), name, body)
}

// An attempt that stops between its charge and its mail is done by the next, with one
// charge; and if it wakes after all, it sends no second mail.
func TestOnceTakenUp(t *testing.T) {
	var hold stuck
	r := newRig(t, setup{options: func(o *api.Options) {
		hold = stuck{o.Repeats.HandedOver, make(chan struct{}), make(chan struct{})}
		o.Repeats.HandedOver = hold
		o.SendDeadline = time.Minute
	}})
	first := make(chan reply, 1)
	go func() { first <- r.once("taken", "taken@example.com") }()
	<-hold.entered
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
	close(hold.leave)
	(<-first).is(t, 504, "delivery-unknown")
	next.once("taken", "taken@example.com").again(t, sent)
	if len(r.box.List()) != 1 || r.used("taken@example.com") != 1 {
		t.Errorf("%d mails, %d charged", len(r.box.List()), r.used("taken@example.com"))
	}
}

// another is a second server on the same stores and relay.
func (r *rig) another() *rig { return r.anotherWith(r.repeats) }

func (r *rig) anotherWith(repeats api.Repeats) *rig {
	return r.anotherAs(func(o *api.Options) { o.Repeats = repeats })
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

// A failingKeeper fails when it is told to.
type failingKeeper struct {
	idempotency.Keeper
	begin, finish, abandon atomic.Bool
}

var errKeeper = fmt.Errorf("%w: dial tcp 10.1.2.3:6379: connection refused", idempotency.ErrUnavailable)

func (f *failingKeeper) Begin(ctx context.Context, name idempotency.Name, body idempotency.Fingerprint) (idempotency.Outcome, error) {
	if f.begin.Load() {
		return idempotency.Outcome{}, errKeeper
	}
	return f.Keeper.Begin(ctx, name, body)
}

func (f *failingKeeper) Finish(ctx context.Context, lease idempotency.Lease, a idempotency.Answer) (bool, error) {
	if f.finish.Load() {
		return false, errKeeper
	}
	return f.Keeper.Finish(ctx, lease, a)
}

func (f *failingKeeper) Abandon(ctx context.Context, lease idempotency.Lease) (bool, error) {
	if f.abandon.Load() {
		return false, errKeeper
	}
	return f.Keeper.Abandon(ctx, lease)
}

// A halfHeard keeper begins, and once nobody hears of it.
type halfHeard struct {
	idempotency.Keeper
	deaf             atomic.Bool
	began, abandoned time.Time // by when it was to be done
}

func (h *halfHeard) Begin(ctx context.Context, name idempotency.Name, body idempotency.Fingerprint) (idempotency.Outcome, error) {
	h.began, _ = ctx.Deadline()
	o, err := h.Keeper.Begin(ctx, name, body)
	if h.deaf.Swap(false) {
		return idempotency.Outcome{Lease: o.Lease}, errKeeper
	}
	return o, err
}

func (h *halfHeard) Abandon(ctx context.Context, lease idempotency.Lease) (bool, error) {
	h.abandoned, _ = ctx.Deadline()
	return h.Keeper.Abandon(ctx, lease)
}

// A mark that was put unheard is taken back with the rest: nothing was sent, and who asks
// again gets his mail.
func TestOnceMarkUnheard(t *testing.T) {
	var handed halfHeard
	handed.deaf.Store(true)
	r := newRig(t, setup{options: func(o *api.Options) {
		handed.Keeper = o.Repeats.HandedOver
		o.Repeats.HandedOver = &handed
	}})
	r.once("k", "unheard@example.com").is(t, 503, "store-unavailable")
	r.once("k", "unheard@example.com").is(t, 200, "")
	if len(r.box.List()) != 1 || r.used("unheard@example.com") != 1 {
		t.Errorf("%d mails, %d charged", len(r.box.List()), r.used("unheard@example.com"))
	}
}

// A key whose use was begun unheard is taken back as well: it is not in flight, since nobody is
// at it. The caller waits no longer for that than for his send.
func TestOnceBegunUnheard(t *testing.T) {
	var answers halfHeard
	answers.deaf.Store(true)
	r := newRig(t, setup{options: func(o *api.Options) {
		answers.Keeper = o.Repeats.Answers
		o.Repeats.Answers = &answers
		o.SendDeadline, o.StorePatience = time.Second, 2*time.Second
	}})
	r.once("k", "unheard@example.com").is(t, 503, "store-unavailable")
	if answers.abandoned.IsZero() || answers.abandoned.After(answers.began) {
		t.Errorf("begun by %v, taken back by %v", answers.began, answers.abandoned)
	}
	r.once("k", "unheard@example.com").is(t, 200, "")
}

// Where what is known of keys cannot be read or written, nothing is sent twice, and
// nothing is charged that was not sent.
func TestOnceUnavailable(t *testing.T) {
	answers, handed := &failingKeeper{}, &failingKeeper{}
	r := newRig(t, setup{options: func(o *api.Options) {
		answers.Keeper, handed.Keeper = o.Repeats.Answers, o.Repeats.HandedOver
		o.Repeats = api.Repeats{Answers: answers, HandedOver: handed}
	}})
	const email = "keeper@example.com"
	for _, fault := range []*atomic.Bool{&answers.begin, &handed.begin} {
		fault.Store(true)
		got := r.once("k", email)
		got.is(t, 503, "store-unavailable")
		if strings.Contains(got.text, "10.1.2.3") || r.used(email) != 0 || len(r.box.List()) != 0 {
			t.Errorf("%d charged, %d mails, answered %s", r.used(email), len(r.box.List()), got.text)
		}
		fault.Store(false)
	}
	answers.finish.Store(true)
	sent := r.once("k", email)
	sent.is(t, 200, "")
	r.once("k", email).is(t, 409, "idempotency-in-flight")
	answers.finish.Store(false)
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
	if !strings.Contains(said, "an answer could not be kept") || !strings.Contains(said, "may have left") {
		t.Errorf("the log says\n%s", said)
	}
}

// A mail whose recipient is refused is never handed over. Where that answer cannot be kept it is
// tried anew, in place of the first, and the log says so.
func TestOnceRefusedAndNeverKept(t *testing.T) {
	r := newRig(t, setup{relay: &fault.Script{At: fault.RCPT, Kind: fault.Permanent, Times: 1}})
	first, said := r.neverKept()
	first.is(t, 422, "recipient-rejected")
	r.once("k", unkept).is(t, 200, "")
	if r.used(unkept) != 1 {
		t.Errorf("%d charged", r.used(unkept))
	}
	if !strings.Contains(said, "an answer could not be kept") || !strings.Contains(said, "tried anew") || strings.Contains(said, "may have left") {
		t.Errorf("the log says\n%s", said)
	}
}

// Also where another attempt has handed the mail over, it may have left.
func TestOnceUnknownAndNeverKept(t *testing.T) {
	r := newRig(t, setup{options: func(o *api.Options) {
		o.Sender = fakeSender(func(context.Context, message.Message) error { panic("swordfish") })
	}})
	r.once("k", unkept).is(t, 500, "internal")
	r.now.Add(lease)
	first, said := r.neverKept()
	first.is(t, 504, "delivery-unknown")
	r.once("k", unkept).is(t, 504, "delivery-unknown")
	if !strings.Contains(said, "an answer could not be kept") || !strings.Contains(said, "may have left") {
		t.Errorf("the log says\n%s", said)
	}
}

// unkept is whom neverKept sends to.
const unkept = "unkept@example.com"

// neverKept sends to unkept with the key k, by a server that cannot keep the answer, and goes on
// to the end of the lease. It returns the answer, and what the log says of the request.
func (r *rig) neverKept() (first reply, said string) {
	r.t.Helper()
	answers := &failingKeeper{Keeper: r.repeats.Answers}
	answers.finish.Store(true)
	dying := r.anotherWith(api.Repeats{Answers: answers, HandedOver: r.repeats.HandedOver})
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

// Where nothing was charged or handed over, and only the key cannot be freed, it is freed
// later: also the one that is marked, as a mail that may have left.
func TestOnceFreedLater(t *testing.T) {
	for _, tt := range keysThatStay {
		t.Run(tt.name, func(t *testing.T) {
			r, store, keeper := newStaying(t, tt.marked)
			r.once("k", "freed@example.com").is(t, 503, "store-unavailable")
			r.once("k", "freed@example.com").is(t, 409, "idempotency-in-flight")
			store.take.Store(false)
			keeper.abandon.Store(false)
			servertest.Eventually(t, "the key is free", func() bool { return r.once("k", "freed@example.com").status == 200 })
			if len(r.box.List()) != 1 || r.used("freed@example.com") != 1 {
				t.Errorf("%d mails, %d charged", len(r.box.List()), r.used("freed@example.com"))
			}
			if strings.Contains(r.do("GET", "/metrics", "", "").text, `mailgate_refunds_total{result="given-back"} 1`) {
				t.Error("a key counts as a place")
			}
		})
	}
}

// The log says what is so with a key that could not be freed.
func TestOnceNotFreed(t *testing.T) {
	for _, tt := range keysThatStay {
		t.Run(tt.name, func(t *testing.T) {
			r, _, _ := newStaying(t, tt.marked)
			request := r.once("k", "freed@example.com").header.Get("X-Request-Id")
			r.shutdown()
			said := journal.messages(t, request)
			if !strings.Contains(said, tt.said) || strings.Contains(said, "given back") {
				t.Errorf("the log says\n%s", said)
			}
		})
	}
}

var keysThatStay = []struct {
	name   string
	marked bool
	said   string
}{
	{"in flight", false, "a key could not be freed, and is in flight"},
	{"marked", true, "told that the mail may have left"},
}

// newStaying is a rig under which nothing can be charged for freed@example.com, nor its key k
// be freed, which may be marked. The keeper is the one that fails.
func newStaying(t *testing.T, marked bool) (*rig, *failing, *failingKeeper) {
	answers, handed := &failingKeeper{}, &failingKeeper{}
	r, store := newFailing(t, setup{options: func(o *api.Options) {
		answers.Keeper, handed.Keeper = o.Repeats.Answers, o.Repeats.HandedOver
		o.Repeats = api.Repeats{Answers: answers, HandedOver: handed}
	}})
	keeper := answers
	if marked { // whoever finds a charge puts a mark before that is given back
		keeper = handed
		gone := r.anotherAs(func(o *api.Options) {
			o.Live.Rules = onlyMailbox(t, &cut{Historian: r.limiter})
			o.Sender = fakeSender(func(context.Context, message.Message) error { return relay.ErrUnsendable })
		})
		gone.once("k", "freed@example.com").is(t, 500, "internal")
	}
	store.unchanged = true
	store.take.Store(true)
	keeper.abandon.Store(true)
	return r, store, keeper
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

	r = newRig(t, setup{options: func(o *api.Options) { o.Repeats = api.Repeats{} }})
	r.once("k", "keys@example.com").is(t, 400, "bad-request")
	r.send("keys@example.com").is(t, 200, "")
}
