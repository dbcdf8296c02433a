package api_test

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/throttle"
)

// lookingUp is a setup in which a caller may look up three times at once and then once
// more every 20 ms.
func lookingUp(t testing.TB, change func(*api.Options)) setup {
	return setup{options: func(o *api.Options) {
		o.Lookups = inMemory(must(throttle.NewTokenBucket(tier("second", 50, 1000), 3))(t), o.Now)
		if change != nil {
			change(o)
		}
	}, actions: threeActions(&failing{}), rules: ruleForEach}
}

// Every route that reads mailboxes out or is an operator's is bounded, for each key
// apart; sends and actions are not.
func TestLookupsAreBounded(t *testing.T) {
	routes := []struct{ method, path, key, body string }{
		{"GET", "/mailboxes/looked@example.com", appKey, ""},
		{"GET", "/admin/mailboxes/looked@example.com", opsKey, ""},
		{"POST", "/admin/mailboxes/looked@example.com/reset", opsKey, ""},
		{"POST", "/admin/actions/reply/reset", opsKey, `{"subject":"looked"}`},
		{"POST", "/admin/rules/domain-rule/reset", opsKey, `{"subject":"example.com"}`},
		{"POST", "/admin/what-if", opsKey, `{"tiers":"hour=1/1h"}`},
	}
	for _, route := range routes {
		r := newRig(t, lookingUp(t, nil))
		for range 3 {
			got := r.do(route.method, route.path, route.key, route.body)
			got.is(t, 200, "")
			// Answers about a mailbox say in their headers how that stands, and none of them
			// how lookups do.
			want := map[bool]string{true: `"minute";r=1;t=0, "hour";r=5;t=0, "day";r=10;t=0`}
			got.carries(t, map[string]string{"RateLimit": want[route.method == "GET"]})
		}
		got := r.do(route.method, route.path, route.key, route.body)
		got.is(t, 429, "quota-exceeded")
		if got.body["rule"] != "lookups" || got.body["limit"] != "second" || got.body["wait_ms"] != 20.0 ||
			got.body["detail"] != "The second limit of this caller's lookups is reached. Try again in 1 s." {
			t.Errorf("%s: %s", route.path, got.text)
		}
		got.carries(t, map[string]string{"Retry-After": "1", "RateLimit": `"second";r=0;t=1`, "RateLimit-Policy": `"second";q=3;w=1`})
		lines := journal.about(t, got.header.Get("X-Request-Id"))
		if len(lines) != 1 || lines[0]["key"] == nil || lines[0]["rule"] != "lookups" {
			t.Errorf("the log says %v", lines)
		}
		if strings.HasPrefix(route.path, "/admin") {
			r.do("GET", "/mailboxes/looked@example.com", appKey, "").is(t, 200, "")
		} else {
			r.do("GET", "/mailboxes/looked@example.com", "another-key", "").is(t, 200, "")
		}
		r.send("looked@example.com").is(t, 200, "")
		r.act("reply", "take", `{"subject":"looked"}`).is(t, 200, "")
		r.do("GET", "/livez", "", "").is(t, 200, "")
		r.now.Add(20)
		r.do(route.method, route.path, route.key, route.body).is(t, 200, "")
	}
}

// A back end and an operator whose keys have one name are two callers.
func TestLookupsOfTwoKeysOfOneName(t *testing.T) {
	r := newRig(t, lookingUp(t, func(o *api.Options) {
		o.APIKeys, o.AdminKeys = must(api.ParseKeys("shop:"+appKey))(t), must(api.ParseKeys("shop:"+opsKey))(t)
	}))
	const mailbox = "/mailboxes/named@example.com"
	for range 3 {
		r.do("GET", mailbox, appKey, "").is(t, 200, "")
	}
	got := r.do("GET", mailbox, appKey, "")
	got.is(t, 429, "quota-exceeded")
	if lines := journal.about(t, got.header.Get("X-Request-Id")); len(lines) != 1 || lines[0]["key"] != "shop" {
		t.Errorf("the log says %v", lines)
	}
	r.do("GET", "/admin"+mailbox, opsKey, "").is(t, 200, "")
	r.do("POST", "/admin"+mailbox+"/reset", opsKey, "").is(t, 200, "")
}

// Whoever tries keys is counted by his address, and cannot lock out who has one.
func TestLookupsWithoutAKey(t *testing.T) {
	r := newRig(t, lookingUp(t, nil))
	const path = "/mailboxes/tried@example.com"
	for _, key := range []string{"", "no-such-key", opsKey} {
		r.do("GET", path, key, "").is(t, 401, "unauthorized")
	}
	got := r.do("GET", path, "no-such-key", "")
	got.is(t, 429, "quota-exceeded")
	for _, line := range journal.about(t, got.header.Get("X-Request-Id")) {
		if line["key"] != nil {
			t.Errorf("the log says %v", line)
		}
	}
	r.do("GET", path, appKey, "").is(t, 200, "")
}

// Where no keys are asked for, each address is a caller; of a proxy's visitors each, and
// of IPv6 each network.
func TestLookupsByAddress(t *testing.T) {
	r := newRig(t, lookingUp(t, func(o *api.Options) {
		keyless(o)
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	}))
	look := func(from string) int {
		return r.request("GET", "/mailboxes/address@example.com", http.Header{"X-Forwarded-For": {from}}, "").status
	}
	for _, from := range []string{"203.0.113.7", "203.0.113.7", "203.0.113.7", "2001:db8::1", "2001:db8::2", "2001:db8::3:4:5"} {
		if status := look(from); status != 200 {
			t.Errorf("%s: %d", from, status)
		}
	}
	for from, want := range map[string]int{"203.0.113.7": 429, "2001:db8::ffff": 429, "203.0.113.8": 200, "2001:db8:0:1::1": 200} {
		if status := look(from); status != want {
			t.Errorf("%s: %d, want %d", from, status, want)
		}
	}
}

// What cannot be counted is not answered, whether the limiter fails or panics.
func TestLookupsThatCannotBeCounted(t *testing.T) {
	for _, tt := range []struct {
		limiter *failingAlways
		status  int
		problem string
	}{{&failingAlways{}, 503, "store-unavailable"}, {&failingAlways{panics: true}, 500, "internal"}} {
		r := newRig(t, setup{options: func(o *api.Options) { o.Lookups = tt.limiter }})
		got := r.do("GET", "/mailboxes/uncounted@example.com", appKey, "")
		got.is(t, tt.status, tt.problem)
		if tt.limiter.panics {
			journal.showsStack(t, got, "failingAlways")
		}
		r.do("GET", "/livez", "", "").is(t, 200, "")
	}
}

type failingAlways struct {
	throttle.Limiter
	panics bool
}

func (f *failingAlways) Take(context.Context, string, throttle.ID) (throttle.Verdict, error) {
	if f.panics {
		panic("the limiter is broken")
	}
	return throttle.Verdict{}, errStore
}

func (f *failingAlways) Release(context.Context, string, throttle.Admission) (bool, error) {
	return false, errStore
}
