package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/must"
)

// kept returns the requests that an operator finds, the newest first, each as its outcome and the members
// of these names.
func (r *rig) kept(query string, members ...string) (all []string) {
	r.t.Helper()
	got := r.do("GET", "/admin/requests?"+query, opsKey, "")
	got.is(r.t, 200, "")
	got.hides(r.t, "@example.com", "alice", "123456")
	for _, one := range got.body["requests"].([]any) {
		one := one.(map[string]any)
		text := fmt.Sprint(one["outcome"])
		for _, name := range members {
			text += fmt.Sprintf(" %v", one[name])
		}
		all = append(all, text)
	}
	return all
}

func same(t testing.TB, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("found\n%s, want\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The purpose of a send that is refused for it may hold anything, so it is kept nowhere.
func TestRequests_InvalidPurpose_IsNotKept(t *testing.T) {
	r := newRig(t, setup{})
	for _, purpose := range []string{"alice@example.com", "your code is 123456", "Sign-up"} {
		r.do("POST", "/send-code", appKey, `{"email":"bob@example.com","purpose":`+quote(purpose)+`}`).isInvalid(t, "purpose:invalid")
	}
	r.do("POST", "/send-code", appKey, `{"email":"bob@example.com","purpose":"sign-up","template":"none"}`).is(t, 422, "invalid")
	same(t, r.kept("email=bob@example.com", "purpose"), "invalid sign-up", "invalid <nil>", "invalid <nil>", "invalid <nil>")
}

// Why did Alice not get her code: typing her address finds everything that the node did about her.
func TestRequests_Address_FindsWhatCameOfEach(t *testing.T) {
	r := newRig(t, setup{actions: twoActions, options: func(*apitest.Options) {}})
	const alice = `"email":"alice@example.com"`
	r.do("POST", "/send-code", appKey, `{`+alice+`,"client_ip":"2001:db8::7"}`).is(t, 200, "")
	r.now.Add(18_750)
	refused := r.do("POST", "/send-code", appKey, `{"email":"Alice+x@Example.com","client_ip":"2001:db8::8"}`)
	refused.is(t, 429, "quota-exceeded")
	r.send("bob@example.com").is(t, 200, "")
	r.do("POST", "/send-code", "another-key", `{`+alice+`,"template":"none"}`).is(t, 422, "invalid")
	r.do("POST", "/verify-code", appKey, `{`+alice+`,"code":"000000"}`)
	r.do("PUT", "/admin/suppressions/alice@example.com", opsKey, `{"reason":"complaint","source":"ticket 4711"}`).is(t, 204, "")
	r.do("POST", "/admin/mailboxes/alice@example.com/reset", opsKey, `{"reason":"ticket 4712"}`).is(t, 200, "")
	r.do("POST", "/send-code", appKey, `{`+alice+`}`).is(t, 422, "recipient-suppressed")
	r.act("reply", "take", `{"subject":"user-9"}`).is(t, 200, "")

	same(t, r.kept("email=aLice%2B7@example.com", "key", "route", "door", "reason"),
		"suppressed shop send-code http complaint", "mailbox reset alex admin-reset http ticket 4712", "recipient suppressed alex admin-suppress http complaint",
		"incorrect shop verify-code http <nil>", "invalid blog send-code http <nil>", "quota-exceeded shop send-code http <nil>", "sent shop send-code http <nil>")
	same(t, r.kept("audited=true", "key", "from", "reason", "source"),
		"mailbox reset alex 127.0.0.1 ticket 4712 <nil>", "recipient suppressed alex 127.0.0.1 complaint ticket 4711")
	same(t, r.kept("outcome=quota-exceeded", "at", "request_id", "rule", "limit", "wait_ms", "visitor", "said"),
		"quota-exceeded 2026-11-20T12:00:18.750Z "+refused.header.Get("X-Request-Id")+" mailbox minute 41250 2001:db8::/64 minute 0 of 1 left, wait 41250 ms, hour 4 of 5 left, day 9 of 10 left")
	same(t, r.kept("outcome=sent&until=2026-11-20T12:00:10Z", "reply"), "sent 250 2.0.0 OK: queued")
	same(t, r.kept("since=2026-11-20T13:00:10%2B01:00&limit=2", "action"), "taken reply", "suppressed <nil>")
	same(t, r.kept("visitor=2001:db8::/64&limit=1"), "quota-exceeded")

	got := r.do("GET", "/admin/requests?limit=1&outcome=sent", opsKey, "")
	got.hides(t, "2001:db8")
	same(t, r.kept(fmt.Sprintf("outcome=sent&before=%s", got.body["before"]), "visitor"), "sent 2001:db8::/64")
	for query, reason := range map[string]string{"limit=501": "limit", "limit=x": "limit", "before=-1": "before", "since=yesterday": "since", "until=12": "until", "email=alice": "email", "audited=false": "audited"} {
		wrong := r.do("GET", "/admin/requests?"+query, opsKey, "")
		wrong.is(t, 422, "invalid")
		wrong.contains(t, `"field":"`+reason+`"`)
	}
	r.do("GET", "/admin/requests/refused", opsKey, "").reads(t, `{"all_nodes":false,"since":"2026-11-20T11:00:18.750Z","mailboxes":[{"name":"`+fmt.Sprint(refused.logged(t, fields{})[0]["mailbox"])+
		`","count":1}],"visitors":[{"name":"2001:db8::/64","count":1}],"keys":[{"name":"shop","count":1}]}`)
	r.now.Add(3_600_001)
	r.do("GET", "/admin/requests/refused", opsKey, "").contains(t, `"mailboxes":[]`)
}

func TestRequests_RelayRefuses_ItsWords(t *testing.T) {
	r := newRig(t, setup{relay: &fault.Script{At: fault.RCPT, Kind: fault.Permanent}})
	r.send("alice@example.com").is(t, 422, "recipient-rejected")
	same(t, r.kept("email=alice@example.com", "reply", "problem"), "rejected 554 5.1.1 never, … recipient-rejected")
}

// A client that follows gets what is there, then what comes, for longer than an answer may take, until the
// server shuts down.
func TestRequests_Followed_ShowsWhatComes(t *testing.T) {
	r := newRig(t, setup{})
	r.send("alice@example.com").is(t, 200, "")
	r.send("bob@example.com").is(t, 200, "")
	follow := func(query string) *http.Response {
		request := must.Get(http.NewRequest("GET", r.URL+"/admin/requests?"+query, nil))(t)
		request.Header = http.Header{"Authorization": {"Bearer " + opsKey}, "Accept": {"text/event-stream"}}
		response := must.Get(http.DefaultClient.Do(request))(t)
		t.Cleanup(func() { response.Body.Close() })
		return response
	}
	response := follow("limit=1")
	events := bufio.NewScanner(response.Body)
	next := func() (e struct{ Outcome, Mailbox string }) {
		for events.Scan() {
			if text, ok := strings.CutPrefix(events.Text(), "data: "); ok && text != "false" { // of all_nodes
				if err := json.Unmarshal([]byte(text), &e); err != nil {
					t.Error(err)
				}
				return e
			}
		}
		return e
	}
	bob := next()
	r.send("alice@example.com").is(t, 429, "quota-exceeded")
	if came := next(); bob.Outcome != "sent" || came.Outcome != "quota-exceeded" || came.Mailbox == bob.Mailbox || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%+v, then %+v", bob, came)
	}
	for range 15 {
		follow("")
	}
	if last := follow(""); last.StatusCode != 503 {
		t.Errorf("the 17th client is answered %d", last.StatusCode)
	}
	began := time.Now()
	r.shutdown()
	if next(); time.Since(began) > 5*time.Second {
		t.Errorf("the shutdown took %s", time.Since(began))
	}
}

// The lists of a filter: what the members of all requests say, and how often.
func TestRequests_Names_AreWhatExists(t *testing.T) {
	r := newRig(t, setup{})
	r.send("alice@example.com").is(t, 200, "")
	r.send("alice@example.com").is(t, 429, "quota-exceeded")
	r.send("bob@example.com").is(t, 200, "")
	got := r.do("GET", "/admin/requests/names", opsKey, "")
	got.is(t, 200, "")
	if text := fmt.Sprint(got.body); text != "map[all_nodes:false doors:[map[count:3 name:http]] keys:[map[count:3 name:shop]] nodes:[] outcomes:[map[count:2 name:sent] map[count:1 name:quota-exceeded]] rules:[map[count:3 name:mailbox]]]" {
		t.Error(text)
	}
	r.do("POST", "/admin/mailboxes/alice@example.com/reset", opsKey, `{}`).is(t, 200, "")
	if got := r.do("GET", "/admin/requests/names?audited=true", opsKey, ""); fmt.Sprint(got.body["outcomes"]) != "[map[count:1 name:mailbox reset]]" {
		t.Error(got.body)
	}
	r.do("GET", "/admin/requests/names?audited=perhaps", opsKey, "").is(t, 422, "invalid")
}
