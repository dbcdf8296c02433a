package api_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/countdown"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
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

// Each answer about a mailbox carries a token, and all of them tell its wait to the
// millisecond, to whoever brings them, and nothing else.
func TestCountdown(t *testing.T) {
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
		want := `{"rule":"mailbox","limit":"minute","wait_ms":44321,"retry_at":"2026-11-20T12:01:00.000Z","server_time":"2026-11-20T12:00:15.679Z"}`
		if got.text != want {
			t.Errorf("answered %s, want %s", got.text, want)
		}
		got.carries(t, map[string]string{
			"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "*", "Cross-Origin-Resource-Policy": "cross-origin",
			"Access-Control-Allow-Credentials": "", "RateLimit": "", "Cache-Control": "no-store",
		})
	}
	r.now.Add(44_320)
	if got := r.count(tokens[0]); got.body["wait_ms"] != 1.0 {
		t.Errorf("in the last millisecond: %s", got.text)
	}
	r.now.Add(1)
	if got := r.count(tokens[1]); got.body["wait_ms"] != 0.0 || got.body["limit"] != nil || got.body["rule"] != nil {
		t.Errorf("at its end: %s", got.text)
	}
	if line := journal.about(t, r.count(tokens[0]).header.Get("X-Request-Id")); len(line) != 1 || line[0]["mailbox"] == nil {
		t.Errorf("the log says %v", line)
	}
	if strings.Contains(journal.text(), tokens[0]) {
		t.Error("the log has a token")
	}
}

// A reset, and another send, are seen by those who hold a token from before.
func TestCountdownGoesOn(t *testing.T) {
	r := newRig(t, setup{})
	token := r.send("goes@example.com").token()
	r.do("POST", "/admin/mailboxes/goes@example.com/reset", opsKey, "").is(t, 200, "")
	if got := r.count(token); got.body["wait_ms"] != 0.0 {
		t.Errorf("after a reset: %s", got.text)
	}
	r.now.Add(1000)
	r.send("goes@example.com").is(t, 200, "")
	if got := r.count(token); got.body["wait_ms"] != 60_000.0 {
		t.Errorf("after another send: %s", got.text)
	}
	if got := r.request("HEAD", "/countdown/"+token, http.Header{}, ""); got.status != 200 || got.text != "" {
		t.Errorf("HEAD: %d %q", got.status, got.text)
	}
}

// Rules of every kind count, and are named: also those of the visitor, the caller and the
// template that the token was for.
func TestCountdownOfOtherRules(t *testing.T) {
	for _, tt := range []struct {
		by    rules.By
		other string // another send that meets the rule
	}{
		{rules.ByDomain, "second@example.com"}, {rules.ByAll, "second@example.org"},
		{rules.ByClientIP, "second@example.org"}, {rules.ByAPIKey, "second@example.org"}, {rules.ByTemplate, "second@example.org"},
	} {
		t.Run(string(tt.by), func(t *testing.T) {
			r := newRig(t, setup{rules: func(r *rig, _ *rules.Rule) []rules.Rule {
				hour := must(throttle.NewFixedWindow(tier("hour", 1, 3_600_000)))(r.t)
				return []rules.Rule{{Name: "other", By: tt.by, Limiter: r.counted("other", hour)}}
			}})
			const visitor = `,"client_ip":"203.0.113.7"`
			first := r.sendAs(appKey, "first@example.com", visitor)
			first.is(t, 200, "")
			refused := r.sendAs(appKey, tt.other, visitor)
			refused.is(t, 429, "quota-exceeded")
			end := must(time.Parse(time.RFC3339Nano, refused.body["retry_at"].(string)))(t).UnixMilli()
			for _, wait := range []int{3_600_000, 2_000_000, 1} {
				r.now.Store(end - int64(wait))
				for _, got := range []reply{r.count(first.token()), r.count(refused.token())} {
					if got.body["rule"] != "other" || got.body["limit"] != "hour" || got.body["wait_ms"] != float64(wait) {
						t.Errorf("%d ms before the end: %s", wait, got.text)
					}
				}
			}
			r.now.Add(1)
			if got := r.count(refused.token()); got.body["wait_ms"] != 0.0 {
				t.Errorf("at the end: %s", got.text)
			}
		})
	}
}

// Whom a rule leaves alone it does not keep waiting, also by the token. Of all others it is
// told.
func TestCountdownOfTheExempt(t *testing.T) {
	r := newRig(t, setup{rules: func(r *rig, _ *rules.Rule) []rules.Rule {
		hour := must(throttle.NewFixedWindow(tier("hour", 1, 3_600_000)))(r.t)
		return []rules.Rule{{Name: "other", By: rules.ByAll, Limiter: r.counted("other", hour), Exempt: rules.Exempt{
			Callers: []string{"blog"}, Networks: []netip.Prefix{netip.MustParsePrefix("2001:db8::/72")},
		}}}
	}})
	r.send("fills@example.com").is(t, 200, "")
	for _, tt := range []struct{ name, key, visitor, rule, limit string }{
		{"a caller", "another-key", "", "mailbox", "minute"},
		{"a visitor", appKey, "2001:db8::1:2:3", "mailbox", "minute"},
		{"neither", appKey, "2001:db8::100:0:0:1", "other", "hour"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			email, more := strings.ReplaceAll(tt.name, " ", "-")+"@example.com", ""
			if tt.visitor != "" {
				more = `,"client_ip":` + quote(tt.visitor)
			}
			sent := r.sendAs(tt.key, email, more)
			if got := r.count(sent.token()); got.body["rule"] != tt.rule || got.body["limit"] != tt.limit || got.body["wait_ms"] != sent.body["wait_ms"] {
				t.Errorf("the send was told %s, and its token tells %s", sent.text, got.text)
			}
			if tt.visitor != "" {
				return
			}
			looked := r.do("GET", "/mailboxes/"+email, tt.key, "")
			if got := r.count(looked.token()); got.body["limit"] != tt.limit {
				t.Errorf("the look was told %s, and its token tells %s", looked.text, got.text)
			}
		})
	}
}

// The longest of everything that a token holds fits.
func TestCountdownOfLongNames(t *testing.T) {
	caller := strings.Repeat("c", 64)
	r := newRig(t, setup{options: func(o *api.Options) { o.APIKeys = must(api.ParseKeys(caller + ":" + appKey))(t) }})
	email := strings.Repeat("m", 64) + "@" + strings.Repeat(strings.Repeat("d", 62)+".", 3)[:185] + ".ex"
	sent := r.sendAs(appKey, email, `,"client_ip":"2001:db8:1111:2222:3333:4444:5555:6666"`)
	sent.is(t, 200, "")
	if got := r.count(sent.token()); got.body["wait_ms"] != 60_000.0 {
		t.Errorf("answered %d %s", got.status, got.text)
	}
}

// A token that is sealed here and holds something else is a fault of ours.
func TestCountdownMalformed(t *testing.T) {
	r := newRig(t, setup{})
	tokens := must(countdown.New(r.options.Secret))(t)
	for _, rest := range []string{"", "\n", "\nshop\t", "\nshop\tnowhere\tcode", "\nshop\t\tcode\t"} {
		r.count(tokens.Seal("malformed@example.com"+rest, r.now.Load()+day)).is(t, 500, "internal")
	}
}

// Whatever is not a token of this server that is still good is one and the same answer.
func TestCountdownWrongTokens(t *testing.T) {
	r := newRig(t, setup{})
	token := r.send("wrong@example.com").token()
	foreign := must(countdown.New([]byte("the secret of somebody else")))(t).Seal("wrong@example.com", r.now.Load()+day)
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

// No mailbox's rule, no secret, no store: what then.
func TestCountdownFaults(t *testing.T) {
	r, store := newFailing(t, setup{})
	token := r.send("faults@example.com").token()
	store.rest.Store(true)
	got := r.count(token)
	got.is(t, 503, "store-unavailable")
	got.carries(t, map[string]string{"Access-Control-Allow-Origin": "*"})

	r = newRig(t, setup{options: func(o *api.Options) { o.Secret = nil }})
	r.count(r.send("faults@example.com").token()).is(t, 200, "")
	r.count(token).is(t, 404, "unknown-countdown")
}

// Pages from anywhere may ask, and what they ask before they do is answered.
func TestCountdownPreflight(t *testing.T) {
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

// One address cannot ask without end, and costs others nothing.
func TestCountdownRate(t *testing.T) {
	var bucket throttle.Limiter
	r := newRig(t, setup{options: func(o *api.Options) {
		bucket = inMemory(must(throttle.NewTokenBucket(tier("second", 2, 1000), 4))(t), o.Now)
		o.Countdowns = bucket
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
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
