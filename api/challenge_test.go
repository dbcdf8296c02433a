package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/challenge"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/throttle/rules"
)

// newChallenging starts a server whose rules challenge the second send of a visitor in an hour.
func newChallenging(t *testing.T, with setup) *rig {
	r := newRig(t, with)
	set := must.Get(rules.New(rules.Options{Tokens: r.tiers("tokens", "token=1/20m")},
		rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: r.tiers("mailboxes", "hour=4/1h")},
		rules.Rule{Name: "visitor", By: rules.ByClientIP, Limiter: r.tiers("visitors", "hour=1/1h"), Challenge: true}))(t)
	r.Options.Live.Rules = set
	r.Reload(delivery.Live{Rules: set, Composer: r.Options.Live.Composer})
	return r
}

// visit sends for a visitor, under a key if there is one.
func (r *rig) visit(email, client, token, key string) reply {
	r.t.Helper()
	body := fmt.Sprintf(`{"email":%q,"client_ip":%q}`, email, client)
	if token != "" {
		body = fmt.Sprintf(`{"email":%q,"client_ip":%q,"challenge":%q}`, email, client, token)
	}
	header := http.Header{"Authorization": {"Bearer " + appKey}, "Content-Type": {"application/json"}}
	if key != "" {
		header.Set("Idempotency-Key", key)
	}
	return r.request("POST", "/send-code", header, body)
}

const visitor = "203.0.113.7"

// The story of a challenge: 403, solved, once, for one mailbox and visitor and time.
func TestSend_Challenge_SolvedOnce(t *testing.T) {
	r := newChallenging(t, setup{})
	another := r.another()
	r.visit("a@example.com", visitor, "", "").is(t, 200, "")
	asked := r.visit("a@example.com", visitor, "", "one")
	asked.is(t, 403, "challenge-required")
	asked.says(t, fields{"rule": "visitor", "limit": "hour", "wait_ms": 3_600_000.0, "violated-policies": nil})
	asked.logged(t, fields{"outcome": "challenged", "rule": "visitor", "limit": "hour", "problem": "challenge-required", "cause": nil})
	asked.hides(t, "turnstile")
	r.do("GET", "/countdown/"+asked.body["countdown"].(string), "", "").says(t, fields{"wait_ms": 0.0, "rule": nil})
	token := apitest.Solve([]byte(asked.text))

	other := r.visit("b@example.com", visitor, token, "")
	other.is(t, 403, "challenge-required")
	other.contains(t, "another mailbox or visitor")
	other.logged(t, fields{"outcome": "challenged", "cause": "the challenge is not solved: it is of another mailbox or visitor, or was altered"})
	another.visit("a@example.com", visitor, token, "one").is(t, 200, "")
	r.visit("a@example.com", visitor, token, "").contains(t, "The token was used before.")
	another.visit("a@example.com", visitor, token, "").is(t, 403, "challenge-required")
	again := r.visit("a@example.com", visitor, token, "one")
	again.is(t, 200, "")
	if again.header.Get("Idempotent-Replayed") != "true" {
		t.Error("the first answer was not replayed")
	}
	r.charged("a@example.com", 2)
	r.sent(2)

	late := apitest.Solve([]byte(r.visit("a@example.com", visitor, "", "").text))
	r.now.Add(challenge.Life)
	r.visit("a@example.com", visitor, late, "").contains(t, "it has expired")
	early := apitest.Solve([]byte(r.visit("a@example.com", visitor, "", "").text))
	r.visit("a@example.com", visitor, early, "").is(t, 200, "")
	r.visit("a@example.com", visitor, apitest.Solve([]byte(r.visit("a@example.com", visitor, "", "").text)), "").is(t, 200, "")
	full := r.visit("a@example.com", visitor, "", "")
	full.is(t, 429, "quota-exceeded")
	full.says(t, fields{"rule": "mailbox", "challenge": nil})
	r.do("GET", "/metrics", opsKey, "").contains(t, `mailgate_sends_total{door="http",limit="hour",outcome="challenged",rule="visitor"} `,
		`mailgate_challenges_total{kind="altcha",result="solved"} `, `mailgate_challenges_total{kind="altcha",result="unsolved"} 2`)
	r.do("GET", "/admin/requests?outcome=challenged&limit=1", opsKey, "").contains(t, `"rule":"visitor"`, `"visitor":"203.0.113.7"`)
	r.do("POST", whatIf, opsKey, "").is(t, 200, "")
}

// Looks at a mailbox wait for no rule whose challenge can be solved, as its countdown.
func TestPeek_ARuleWithAChallenge_IsNoWait(t *testing.T) {
	r := newRig(t, setup{})
	set := must.Get(rules.New(rules.Options{Tokens: r.tiers("tokens", "token=1/20m")},
		rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: r.tiers("mailboxes", "hour=4/1h")},
		rules.Rule{Name: "everybody", By: rules.ByAll, Limiter: r.tiers("everybody", "day=1/24h"), Challenge: true}))(t)
	r.Reload(delivery.Live{Rules: set, Composer: r.Options.Live.Composer})
	r.send("a@example.com").is(t, 200, "")
	r.send("b@example.com").is(t, 403, "challenge-required")
	for _, path := range []string{"/mailboxes/b@example.com", "/admin/mailboxes/b@example.com"} {
		r.do("GET", path, map[bool]string{true: opsKey, false: appKey}[strings.HasPrefix(path, "/admin")], "").says(t, fields{"wait_ms": 0.0, "rule": nil})
	}
}

// One token and two nodes: of sends at the same moment one passes.
func TestSend_OneToken_ManyAtOnce(t *testing.T) {
	r := newChallenging(t, setup{})
	nodes := []*rig{r, r.another()}
	r.visit("a@example.com", visitor, "", "")
	token := apitest.Solve([]byte(r.visit("a@example.com", visitor, "", "").text))
	var passed atomic.Int32
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if nodes[i%2].visit("a@example.com", visitor, token, "").status == 200 {
				passed.Add(1)
			}
		})
	}
	all.Wait()
	if passed.Load() != 1 {
		t.Errorf("%d sends passed", passed.Load())
	}
	r.charged("a@example.com", 2)
}

// A send that never left gives its token back, also under its key.
func TestSend_RelayDown_RefundsTheToken(t *testing.T) {
	r := newChallenging(t, setup{relay: &fault.Script{At: fault.Dot, Kind: fault.Temporary, After: 1, Times: 2}})
	r.visit("a@example.com", visitor, "", "").is(t, 200, "")
	token := apitest.Solve([]byte(r.visit("a@example.com", visitor, "", "").text))
	r.visit("a@example.com", visitor, token, "one").is(t, 503, "relay-unavailable")
	r.charged("a@example.com", 1)
	r.visit("a@example.com", visitor, token, "one").is(t, 503, "relay-unavailable")
	r.visit("a@example.com", visitor, token, "one").is(t, 200, "")
	r.visit("a@example.com", visitor, token, "").is(t, 403, "challenge-required")
}

// Turnstile is asked about tokens where a rule challenges. While it fails, the proof of work is offered alone.
func TestSend_Turnstile_SolvedOrDown(t *testing.T) {
	var asked, down atomic.Int32
	verifier := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		asked.Add(1)
		if down.Load() > 0 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		fmt.Fprintf(w, `{"success":%t,"hostname":"acme.example","challenge_ts":%q}`, q.FormValue("response") != "wrong", time.Date(2026, 11, 20, 11, 59, 0, 0, time.UTC).Format(time.RFC3339))
	}))
	t.Cleanup(verifier.Close)
	r := newChallenging(t, setup{options: func(o *apitest.Options) {
		o.Turnstile = &challenge.Turnstile{Sitekey: "0x4", Secret: "s", Hosts: []string{"acme.example"}, Verifier: verifier.URL}
	}})
	r.visit("a@example.com", visitor, "", "").is(t, 200, "")
	r.visit("a@example.com", visitor, "", "").contains(t, `"turnstile":{"sitekey":"0x4"}`)
	r.visit("a@example.com", visitor, "wrong", "").contains(t, "the verifier refuses the token", `"turnstile":{"sitekey":"0x4"}`)
	r.visit("a@example.com", visitor, "right", "").is(t, 200, "")
	r.visit("a@example.com", visitor, "right", "").is(t, 403, "challenge-required")
	down.Store(1)
	fallen := r.visit("a@example.com", visitor, "next", "")
	fallen.is(t, 403, "challenge-required")
	fallen.contains(t, "cannot be verified now")
	fallen.hides(t, "turnstile")
	fallen.logged(t, fields{"outcome": "challenged", "cause": "the verifier of the challenge failed: its status is 502"})
	r.visit("a@example.com", visitor, apitest.Solve([]byte(fallen.text)), "").is(t, 200, "")
	if n := asked.Load(); n != 4 {
		t.Errorf("the verifier was asked %d times", n)
	}
	r.Reload(delivery.Live{Rules: r.onlyMailbox("mailboxes", "hour=9/1h"), Composer: r.Options.Live.Composer})
	r.visit("a@example.com", visitor, "unneeded", "").is(t, 200, "")
	if n := asked.Load(); n != 4 {
		t.Error("the verifier was asked although no rule challenges")
	}
	r.do("GET", "/metrics", opsKey, "").contains(t, `mailgate_challenges_total{kind="turnstile",result="failed"} 1`, `mailgate_challenges_total{kind="turnstile",result="solved"} 2`)
}
