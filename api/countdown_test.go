package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/internal/countdown"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/throttle"
)

// token is the countdown's in an answer.
func (got reply) token() string {
	token, _ := got.body["countdown"].(string)
	return token
}

func (r *rig) count(token string) reply {
	r.t.Helper()
	return r.request("GET", "/countdown/"+token, http.Header{"Origin": {"https://shop.example"}}, "")
}

// Each answer about a mailbox has a token, which tells its wait to the millisecond and nothing else;
// also after a reset and another send.
func TestCountdown_Token_TellsTheWait(t *testing.T) {
	r := newRig(t, setup{})
	sent := r.send("waits@example.com")
	r.now.Add(15_679)
	denied := r.send("Waits+x@example.com")
	looked := r.do("GET", "/mailboxes/waits@example.com", appKey, "")
	tokens := []string{sent.token(), denied.token(), looked.token()}
	for i, token := range tokens {
		if slices.Contains(tokens[:i], token) || strings.Contains(token, "waits") {
			t.Errorf("the token %d is %q", i, token)
		}
		got := r.count(token)
		got.is(t, 200, "")
		got.reads(t, `{"rule":"mailbox","limit":"minute","wait_ms":44321,"retry_at":"2026-11-20T12:01:00.000Z","server_time":"2026-11-20T12:00:15.679Z"}`)
		got.carries(t, map[string]string{
			"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "*", "Cross-Origin-Resource-Policy": "cross-origin",
			"Access-Control-Allow-Credentials": "", "RateLimit": "", "Cache-Control": "no-store",
		})
	}
	r.now.Add(44_320)
	r.count(tokens[0]).says(t, fields{"wait_ms": 1.0})
	r.now.Add(1)
	got := r.count(tokens[1])
	got.says(t, fields{"wait_ms": 0.0, "limit": nil, "rule": nil})
	got.logged(t, fields{"mailbox": something})
	journal.private(tokens...)
	r.send("waits@example.com").is(t, 200, "")
	r.count(tokens[0]).says(t, fields{"wait_ms": 60_000.0})
	r.do("POST", "/admin/mailboxes/waits@example.com/reset", opsKey, "").is(t, 200, "")
	r.count(tokens[0]).says(t, fields{"wait_ms": 0.0})
	got = r.request("HEAD", "/countdown/"+tokens[0], http.Header{}, "")
	got.is(t, 200, "")
	got.reads(t, "")
}

// Every invalid token has the same answer.
func TestCountdown_WrongTokens_HaveOneAnswer(t *testing.T) {
	r := newRig(t, setup{})
	token := r.send("wrong@example.com").token()
	foreign := must.Get(countdown.New([]byte("the secret of another server")))(t).Seal("wrong@example.com", r.now.Load()+day)
	other := map[bool]string{true: "B", false: "A"}[token[20] == 'A']
	wrong := []string{
		"x", "undefined", foreign, token[1:], token[:len(token)-1], token + "A", token[:20] + other + token[21:], "%00", "a@example.com",
		strings.ToUpper(token), strings.Repeat("A", len(token)), strings.Repeat("A", 4000), "%41" + token[1:],
	}
	for _, text := range wrong {
		got := r.count(text)
		got.is(t, 404, "unknown-countdown")
		got.carries(t, map[string]string{"Access-Control-Allow-Origin": "*", "Cache-Control": "no-store"})
	}
	r.now.Add(day - 1)
	r.count(token).is(t, 200, "")
	r.now.Add(1)
	r.count(token).is(t, 404, "unknown-countdown")
}

// What is sealed here and holds something else is an internal error.
func TestCountdown_Faults_AreAnswered(t *testing.T) {
	r, store := newFaulty(t, setup{})
	token := r.send("faults@example.com").token()
	store.Fail("peek")
	got := r.count(token)
	got.is(t, 503, "store-unavailable")
	got.carries(t, map[string]string{"Access-Control-Allow-Origin": "*"})

	tokens := must.Get(countdown.New(r.Options.Secret))(t)
	for _, rest := range []string{"", "\nshop\tnowhere\tcode", "\nshop\t\tcode\tno purpose"} {
		r.count(tokens.Seal("malformed@example.com"+rest, r.now.Load()+day)).is(t, 500, "internal")
	}

}

// Pages of any origin may read countdowns, and nothing else.
func TestCountdown_Preflight_AllowsAnyPage(t *testing.T) {
	r := newRig(t, setup{})
	for _, path := range []string{"/countdown/x", "/countdown.js", "/countdown.d.ts"} {
		got := r.request("OPTIONS", path, http.Header{"Origin": {"https://shop.example"}, "Access-Control-Request-Method": {"GET"}}, "")
		got.carries(t, map[string]string{
			"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Methods": "GET, HEAD", "Access-Control-Allow-Headers": "*",
			"Access-Control-Max-Age": "86400", "Allow": "GET, HEAD, OPTIONS",
		})
		if got.status != 204 {
			t.Errorf("%s: %d", path, got.status)
		}
		r.do("POST", path, "", "").is(t, 405, "method-not-allowed")
	}
	got := r.request("OPTIONS", "/send-code", http.Header{"Origin": {"https://shop.example"}, "Access-Control-Request-Method": {"POST"}}, "")
	got.carries(t, map[string]string{"Access-Control-Allow-Origin": "", "Access-Control-Allow-Methods": ""})
}

func TestCountdown_Rate_IsLimitedByAddress(t *testing.T) {
	var bucket *throttle.Limiter
	r := newRig(t, setup{options: func(o *apitest.Options) {
		bucket = apitest.Limiter(must.Get(throttle.NewTokenBucket(tier("second", 2, 1000), 4))(t), o.Now)
		o.RateLimits.Countdowns = bucket
		behindProxy(o)
	}})
	token := r.send("rate@example.com").token()
	ask := func(visitor string) reply {
		return r.request("GET", "/countdown/"+token, http.Header{"X-Forwarded-For": {visitor}}, "")
	}
	for range 4 {
		ask("2001:db8::1").is(t, 200, "")
	}
	for n := range 3 {
		got := ask(fmt.Sprintf("2001:db8::%d", n))
		got.is(t, 429, "quota-exceeded")
		if got.body["rule"] != "countdowns" || !strings.Contains(got.body["detail"].(string), "of this address's countdowns is reached") {
			t.Errorf("answered %s", got.text)
		}
		got.carries(t, map[string]string{"Access-Control-Allow-Origin": "*", "Retry-After": "1"})
	}
	ask("2001:db8:1::1").is(t, 200, "")
	r.now.Add(500)
	ask("2001:db8::1").is(t, 200, "")
}
