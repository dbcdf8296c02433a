package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/internal/apikey"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// lookingUp is a setup in which a caller may look up three times at once and then every 20 ms. An API
// key and an admin key have one name.
func lookingUp(t testing.TB, changes ...func(*apitest.Options)) setup {
	return setup{options: func(o *apitest.Options) {
		o.RateLimits.Lookups = apitest.Limiter(must.Get(throttle.NewTokenBucket(tier("second", 50, 1000), 3))(t), o.Now)
		o.Access.AdminKeys = must.Get(apikey.Parse("shop:"+opsKey, nil))(t)
		for _, change := range changes {
			change(o)
		}
	}, actions: twoActions, rules: ruleForEach}
}

// Every route that reads mailboxes or is an operator's is limited, for each key apart, also if their
// names are one. Sends, actions and the suppression list are not, so that it can be imported and exported.
func TestLookups_EachRoute_IsLimitedByKey(t *testing.T) {
	for _, limited := range routesWithKeys {
		if limited.path == "/admin/figures" || limited.path == "/admin/requests" || limited.path == "/admin/requests/refused" || strings.HasPrefix(limited.path, "/admin/suppressions") || limited.method == "POST" && limited.key() == appKey && limited.path != "/mailboxes/peek" {
			continue
		}
		r := newRig(t, lookingUp(t))
		ask := func() reply { return r.do(limited.method, limited.path, limited.key(), limited.body) }
		for range 3 {
			got := ask()
			got.is(t, 200, "")
			if strings.Contains(got.header.Get("RateLimit"), `"second"`) {
				t.Errorf("%s tells the limit of lookups in RateLimit", limited.path)
			}
		}
		got := ask()
		got.is(t, 429, "quota-exceeded")
		got.says(t, fields{"rule": "lookups", "limit": "second", "wait_ms": 20.0, "detail": "The second limit of this caller's lookups is reached. Try again in 1 s."})
		got.carries(t, map[string]string{"Retry-After": "1", "RateLimit": `"second";r=0;t=1`, "RateLimit-Policy": `"second";q=3;w=1`})
		if all := got.partitions("RateLimit"); all[0] == "" {
			t.Errorf("%s has no partition key", got.header.Get("RateLimit"))
		}
		got.logged(t, fields{"key": "shop", "rule": "lookups"})
		other := map[string]route{appKey: {path: "/admin/mailboxes/looked@example.com"}, opsKey: {path: "/mailboxes/looked@example.com"}}[limited.key()]
		r.do("GET", other.path, other.key(), "").is(t, 200, "")
		r.do("GET", "/mailboxes/looked@example.com", "another-key", "").is(t, 200, "")
		r.send("looked@example.com").is(t, 200, "")
		r.act("reply", "take", `{"subject":"looked"}`).is(t, 200, "")
		r.now.Add(20)
		ask().is(t, 200, "")
	}
}

// Clients that try keys are counted by address, and cannot lock out a caller with a key.
func TestLookups_WrongKeys_AreLimitedByAddress(t *testing.T) {
	r := newRig(t, lookingUp(t))
	const path = "/mailboxes/tried@example.com"
	for _, key := range []string{"", "no-such-key", opsKey} {
		r.do("GET", path, key, "").is(t, 401, "unauthorized")
	}
	got := r.do("GET", path, "no-such-key", "")
	got.is(t, 429, "quota-exceeded")
	got.logged(t, fields{"key": nil})
	r.do("GET", path, appKey, "").is(t, 200, "")
}

// Wrong keys are counted on every route that needs one, whatever the limit of lookups; a right key is never refused for them.
func TestWrongKeys_EachRoute_CountedByAddress(t *testing.T) {
	r := newRig(t, setup{options: func(o *apitest.Options) {
		o.RateLimits.WrongKeys = apitest.Limiter(must.Get(throttle.NewTokenBucket(tier("per-second", 1, 1000), 4))(t), o.Now)
	}, actions: twoActions, rules: ruleForEach})
	for _, path := range []string{"/send-code", "/verify-code", "/actions/reply/take", "/send-code"} {
		r.do("POST", path, "no-such-key", `{"email":"tried@example.com"}`).is(t, 401, "unauthorized")
	}
	got := r.do("POST", "/send-code", "no-such-key", `{"email":"tried@example.com"}`)
	got.is(t, 429, "quota-exceeded")
	got.says(t, fields{"rule": "wrong-keys"})
	for _, route := range []string{
		"POST /actions/reply/peek", "POST /actions/reply/release", "GET /admin/figures", "GET /admin/requests/refused", "GET /admin/requests/names", "GET /admin/suppressions",
		"DELETE /admin/suppressions/tried@example.com", "PUT /admin/suppressions/tried@example.com",
	} {
		method, path, _ := strings.Cut(route, " ")
		body := ""
		if method == "POST" {
			body = `{"subject":"user-1"}`
		}
		r.do(method, path, "no-such-key", body).is(t, 429, "quota-exceeded")
	}
	r.send("tried@example.com").is(t, 200, "")
}

// Where no key is asked for each visitor is a caller: an IPv4 address or an IPv6 network.
func TestLookups_NoKeys_AreLimitedByAddress(t *testing.T) {
	r := newRig(t, lookingUp(t, keyless, behindProxy))
	for _, tt := range []struct {
		from string
		want int
	}{
		{"203.0.113.7", 200}, {"203.0.113.7", 200}, {"203.0.113.7", 200}, {"203.0.113.7", 429}, {"203.0.113.8", 200},
		{"2001:db8::1", 200}, {"2001:db8::2", 200}, {"2001:db8::3:4:5", 200}, {"2001:db8::ffff", 429}, {"2001:db8:0:1::1", 200},
	} {
		if got := r.request("GET", "/mailboxes/address@example.com", http.Header{"X-Forwarded-For": {tt.from}}, ""); got.status != tt.want {
			t.Errorf("%s: %d, want %d", tt.from, got.status, tt.want)
		}
	}
}

// A lookup that cannot be counted is not answered. What may have been counted is refunded.
func TestLookups_LimiterFails_NotAnswered(t *testing.T) {
	lookups := &throttletest.Faulty{}
	lookups.Fail("taken")
	r := newRig(t, setup{options: func(o *apitest.Options) {
		o.RateLimits.Lookups = lookups.Break(apitest.Limiter(throttletest.Policy(t, "hour=1/1h"), nil))
	}})
	r.do("GET", "/mailboxes/uncounted@example.com", appKey, "").is(t, 503, "store-unavailable")
	lookups.Fail()
	r.do("GET", "/mailboxes/uncounted@example.com", appKey, "").is(t, 200, "")
}
