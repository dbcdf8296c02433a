package api_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/apikey"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
)

// once sends under an Idempotency-Key, which is the text of the header.
func (r *rig) once(key, email string) reply {
	r.t.Helper()
	return r.onceAs(appKey, key, `{"email":`+quote(email)+`}`)
}

func (r *rig) onceAs(caller, key, body string) reply {
	r.t.Helper()
	return r.under(key, caller, "/send-code", body)
}

// under sends a request under an Idempotency-Key.
func (r *rig) under(key, caller, path, body string) reply {
	r.t.Helper()
	return r.request("POST", path, http.Header{
		"Authorization": {"Bearer " + caller}, "Content-Type": {"application/json"}, "Idempotency-Key": {key},
	}, body)
}

// again fails the test unless the answer is the first one, byte for byte.
func (got reply) again(t testing.TB, first reply) {
	t.Helper()
	if got.status != first.status || got.text != first.text || got.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the retry is answered %d %v %s\nthe first was %d %s", got.status, got.header, got.text, first.status, first.text)
	}
	for _, name := range []string{"Content-Type", "RateLimit", "RateLimit-Policy", "Retry-After", "Cache-Control"} {
		if got.header.Get(name) != first.header.Get(name) {
			t.Errorf("%s is %q, and was %q", name, got.header.Get(name), first.header.Get(name))
		}
	}
	if got.header.Get("X-Request-Id") == first.header.Get("X-Request-Id") {
		t.Error("the retry has the request id of the first")
	}
}

// The same key and body are one email and one answer for a day; then the key is free.
func TestIdempotencyKey_Repeated_AnsweredAlikeForADay(t *testing.T) {
	r := newRig(t, setup{})
	first := r.once(`"click-1"`, "once@example.com")
	first.is(t, 200, "")
	for _, passed := range []int64{0, 59_999, day - 60_000} {
		r.now.Add(passed)
		r.once("click-1", "once@example.com").again(t, first)
	}
	r.sent(1)
	r.charged("once@example.com", 1)
	r.once(` "click-1" `, "once@example.com").logged(t, fields{"replayed": true})
	journal.private("click-1")
	r.has(t, `mailgate_sends_total{door="http",limit="",outcome="replayed",rule=""} 4`)
	r.now.Add(1)
	second := r.once("click-1", "once@example.com")
	second.is(t, 200, "")
	if second.body["id"] == first.body["id"] || len(r.Relay.List()) != 2 {
		t.Errorf("after a day: %s", second.text)
	}
}

// A key belongs to its caller and to one body, to the byte.
func TestIdempotencyKey_OtherBody_Mismatch(t *testing.T) {
	r := newRig(t, setup{})
	const body = `{"email":"mine@example.com"}`
	r.onceAs(appKey, "k", body).is(t, 200, "")
	for _, other := range []string{body + " ", `{"email":"other@example.com"}`, `{"email":"mine@example.com","locale":"zh"}`, `{"email":"mine@example.com","purpose":"sign-up"}`} {
		r.onceAs(appKey, "k", other).is(t, 422, "idempotency-mismatch")
	}
	r.sent(1)
	r.charged("mine@example.com", 1)
	r.onceAs("another-key", "k", `{"email":"theirs@example.com"}`).is(t, 200, "")
	r.onceAs("another-key", "k", body).is(t, 422, "idempotency-mismatch")
}

// Simultaneous requests under one key are one email. Those beside the first are told that it is in
// progress.
func TestIdempotencyKey_Simultaneous_OneEmail(t *testing.T) {
	sender := newGated()
	r := newRig(t, setup{options: func(o *apitest.Options) { o.Relay = sender }})
	const clicks = 32
	answers := make(chan reply, clicks)
	for range clicks {
		go func() { answers <- r.once("double", "double@example.com") }()
	}
	<-sender.entered
	for range clicks - 1 {
		got := <-answers
		got.is(t, 409, "idempotency-in-flight")
		got.carries(t, map[string]string{"Retry-After": "1"})
	}
	r.once("double", "other@example.com").is(t, 422, "idempotency-mismatch")
	close(sender.leave)
	first := <-answers
	first.is(t, 200, "")
	r.once("double", "double@example.com").again(t, first)
	r.charged("double@example.com", 1)
}

// A request that was not valid or was refused leaves its key free.
func TestIdempotencyKey_Refused_IsFree(t *testing.T) {
	r := newRig(t, setup{})
	r.once("k", "no address").is(t, 422, "invalid")
	r.onceAs(appKey, "k", "{").is(t, 400, "bad-request")
	r.send("later@example.com").is(t, 200, "")
	r.once("k", "later@example.com").is(t, 429, "quota-exceeded")
	r.now.Add(60_000)
	r.once("k", "later@example.com").is(t, 200, "")
}

// Where the records of keys fail, nothing is sent twice, and nothing charged that was not sent.
func TestIdempotencyKey_StorageFails_NothingSentTwice(t *testing.T) {
	r := newRig(t, setup{})
	const email = "keeper@example.com"
	for _, to := range []int32{begun, handedOver} {
		r.keys.refused.Store(to)
		r.once("k", email).is(t, 503, "store-unavailable")
		r.sent(0)
		r.charged(email, 0)
	}
	r.keys.refused.Store(answered)
	sent := r.once("k", email)
	sent.is(t, 200, "")
	r.once("k", email).is(t, 409, "idempotency-in-flight")
	r.keys.refused.Store(0)
	servertest.Eventually(t, "the answer is kept", func() bool { return r.once("k", email).status == 200 })
	r.once("k", email).again(t, sent)
	r.sent(1)
	r.charged(email, 1)
}

// An answer outlives the template of its email. A request that was never done under a template that
// is gone leaves its key free.
func TestIdempotencyKey_TemplateGone_FirstAnswerStays(t *testing.T) {
	r := newRig(t, setup{})
	const old = `{"email":"gone@example.com","template":"invite"}`
	r.reload(func(live *delivery.Live) { live.Composer = composerWith(t, invitation) })
	first := r.onceAs(appKey, "k", old)
	first.is(t, 200, "")
	r.reload(func(live *delivery.Live) { live.Composer = composerWith(t, nil) })
	r.onceAs(appKey, "k", old).again(t, first)
	r.onceAs(appKey, "k", old+" ").is(t, 422, "invalid")
	r.sent(1)
	r.charged("gone@example.com", 1)
	for range 2 {
		r.onceAs(appKey, "another", old).is(t, 422, "invalid")
	}
	r.onceAs(appKey, "another", `{"email":"new@example.com"}`).is(t, 200, "")
	r.keys.alone = true
	r.onceAs(appKey, "alone", old).is(t, 503, "store-unavailable") // another node may have done it
}

// An email whose answer was lost may have left: after the lease a retry is told so, also where its
// template is gone, and that answer stays.
func TestIdempotencyKey_AnswerLost_DeliveryUnknown(t *testing.T) {
	const body = `{"email":"lost@example.com","template":"invite"}`
	r, store := newFaulty(t, setup{options: func(o *apitest.Options) { o.Live.Composer = composerWith(t, invitation) }})
	r.keys.refused.Store(answered)
	id := r.onceAs(appKey, "k", body).body["id"]
	r.shutdown()
	r.keys.refused.Store(0)
	r = r.another()
	r.reload(func(live *delivery.Live) { live.Composer = composerWith(t, nil) })
	r.onceAs(appKey, "k", body).is(t, 409, "idempotency-in-flight")
	r.now.Add(lease)
	store.Fail("peek")
	r.onceAs(appKey, "k", body).is(t, 503, "store-unavailable")
	store.Fail()
	unknown := r.onceAs(appKey, "k", body)
	unknown.is(t, 504, "delivery-unknown")
	unknown.says(t, fields{"id": id, "wait_ms": 30_000.0})
	r.onceAs(appKey, "k", body).again(t, unknown)
	r.sent(1)
	r.charged("lost@example.com", 1)
}

func TestIdempotencyKey_Malformed_Refused(t *testing.T) {
	r := newRig(t, setup{})
	for _, key := range []string{"", `""`, `"a`, `a"`, `a b`, `a,b`, `a;b`, `"a";b=1`, "clé", strings.Repeat("k", 256), `"a", "b"`} {
		r.once(key, "keys@example.com").is(t, 400, "bad-request")
	}
	r.request("POST", "/send-code", http.Header{
		"Authorization": {"Bearer " + appKey}, "Content-Type": {"application/json"}, "Idempotency-Key": {"a", "b"},
	}, `{"email":"keys@example.com"}`).is(t, 400, "bad-request")
	r.once(strings.Repeat("k", 255), "keys@example.com").is(t, 200, "")
}

// While a secret is changed the old one and the new one are one caller.
func TestIdempotencyKey_SecretChanged_SameCaller(t *testing.T) {
	r := newRig(t, setup{options: func(o *apitest.Options) {
		o.Access.APIKeys = must.Get(apikey.Parse("shop:the-new-secret,shop:the-old-secret,blog:another-key", nil))(t)
	}})
	const body = `{"email":"change@example.com"}`
	first := r.onceAs("the-old-secret", "click-1", body)
	first.is(t, 200, "")
	again := r.onceAs("the-new-secret", "click-1", body)
	again.again(t, first)
	again.logged(t, fields{"key": "shop"})
	r.onceAs("another-key", "click-1", body).is(t, 429, "quota-exceeded")
}

// invitation is a template that other composers do not have.
var invitation = fstest.MapFS{
	"invite/en/subject.txt": {Data: []byte("Come")}, "invite/en/text.txt": {Data: []byte("{{.Code}}")},
	"invite/en/body.html": {Data: []byte("<p>{{.Code}}</p>")},
}
