package api_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/hooks"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/throttle/rules"
)

const (
	hookSecret  = "aWxpa2VzdXBhYmFzZXZlcnltdWNoYW5kaWhvcGV5b3Vkb3Rvbw=="
	logtoHeader = "Bearer of-the-connector-1"
)

// hooksOn has both hooks on, with their templates.
func hooksOn(t testing.TB) func(*apitest.Options) {
	secrets := must.Get(hooks.ParseSecrets("v1,whsec_" + hookSecret))(t)
	from := must.Get(message.ParseSender("Acme <no-reply@acme.example>"))(t)
	templates := must.Get(message.LoadTemplates(nil, "en", "supabase", "logto"))(t)
	return func(o *apitest.Options) {
		o.Hooks = []hooks.Hook{hooks.NewSupabase(secrets, "https://project.supabase.example/auth/v1"), hooks.NewLogto(logtoHeader, "https://app.example")}
		o.Live.Composer = must.Get(message.NewComposer(from, templates))(t)
	}
}

// supabase makes one try of a call: of a file of package hooks, changed by pairs of texts.
func (r *rig) supabase(file string, pairs ...string) reply {
	r.t.Helper()
	body := strings.NewReplacer(pairs...).Replace(string(must.Get(os.ReadFile("../hooks/testdata/" + file + ".json"))(r.t)))
	return r.request("POST", "/hooks/supabase", r.sign(body), body)
}

// sign makes the headers of a call as Supabase Auth does, with its library.
func (r *rig) sign(body string) http.Header {
	r.t.Helper()
	now := time.UnixMilli(r.now.Load())
	id := fmt.Sprint("msg_", time.Now().UnixNano())
	signature := must.Get(must.Get(webhooks.NewWebhook("whsec_"+hookSecret))(r.t).Sign(id, now, []byte(body)))(r.t)
	return http.Header{"Content-Type": {"application/json"}, "Webhook-Id": {id}, "Webhook-Timestamp": {fmt.Sprint(now.Unix())}, "Webhook-Signature": {signature}}
}

func (r *rig) logto(body string) reply {
	r.t.Helper()
	return r.request("POST", "/hooks/logto", http.Header{"Authorization": {logtoHeader}, "Content-Type": {"application/json"}}, body)
}

const signIn = `{"to":"foo@example.com","type":"SignIn","payload":{"code":"123456","locale":"zh-CN"},"ip":"203.0.113.7"}`

func TestHook_NotGenuine_NoDecision(t *testing.T) {
	r := newRig(t, setup{options: hooksOn(t)})
	call := string(must.Get(os.ReadFile("../hooks/testdata/signup.json"))(t))
	sign := func(change func(http.Header)) http.Header {
		header := r.sign(call)
		change(header)
		return header
	}
	other := r.sign(call + " ")
	late := r.sign(call)
	r.now.Add(6 * 60_000)
	for name, header := range map[string]http.Header{
		"no header": {}, "too old": late,
		"no signature":             sign(func(h http.Header) { h.Del("Webhook-Signature") }),
		"of another body":          sign(func(h http.Header) { h["Webhook-Signature"] = other["Webhook-Signature"] }),
		"of another call":          sign(func(h http.Header) { h.Set("Webhook-Id", "msg_2") }),
		"an API key":               {"Authorization": {"Bearer " + appKey}},
		"Logto's Authorization":    {"Authorization": {logtoHeader}},
		"signed, the time changed": sign(func(h http.Header) { h.Set("Webhook-Timestamp", "1795176001") }),
	} {
		if got := r.request("POST", "/hooks/supabase", header, call); got.status != 401 || !strings.HasSuffix(fmt.Sprint(got.body["type"]), "unauthorized") {
			t.Errorf("%s: %d %s", name, got.status, got.text)
		}
	}
	for _, header := range []http.Header{{}, {"Authorization": {"Bearer x"}}, {"Authorization": {"Bearer " + appKey}}, r.sign(signIn)} {
		if got := r.request("POST", "/hooks/logto", header, signIn); got.status != 401 {
			t.Errorf("%v: %d %s", header, got.status, got.text)
		}
	}
	if got := r.send("alice@example.com"); got.status != 200 {
		t.Errorf("a call that is not genuine was charged: %d", got.status)
	}
	if len(r.Mails("alice@example.com")) != 1 {
		t.Errorf("%d emails", len(r.Mails("alice@example.com")))
	}
}

// Each trait that a rule can count by is known of a hook's email: the second one is refused in the words of its limit.
func TestHook_EachTrait_RefusesTheSecond(t *testing.T) {
	t.Parallel()
	for _, by := range rules.Bys() {
		t.Run(string(by), func(t *testing.T) {
			r := newRig(t, setup{options: hooksOn(t), policy: "day=100/24h", rules: also("extra", by, "hour=1/1h")})
			if got := r.logto(signIn); got.status != 200 {
				t.Fatalf("%d %s", got.status, got.text)
			}
			if got := r.logto(signIn); got.status != 429 || !strings.HasPrefix(got.text, "The hour limit of "+by.Whose()+" is reached.") {
				t.Errorf("readCall leaves it out: %d %s", got.status, got.text)
			}
		})
	}
}

func TestHook_Off_NotFound(t *testing.T) {
	r := newRig(t, setup{})
	if got := r.supabase("signup"); got.status != 404 {
		t.Errorf("%d %s", got.status, got.text)
	}
	if got := r.logto(signIn); got.status != 404 {
		t.Errorf("%d %s", got.status, got.text)
	}
}

func TestHook_BodySize_64KiB(t *testing.T) {
	r := newRig(t, setup{options: hooksOn(t)})
	filled := func(size int) []string {
		call := must.Get(os.ReadFile("../hooks/testdata/signup.json"))(t)
		return []string{`"phone":""`, `"phone":"` + strings.Repeat("0", size-len(call)) + `"`}
	}
	if got := r.supabase("signup", filled(64<<10)...); got.status != 200 || got.text != "{}" {
		t.Errorf("64 KiB: %d %s", got.status, got.text)
	}
	if got := r.supabase("signup", filled(64<<10+1)...); got.status != 413 || !strings.Contains(got.text, "65536 bytes") {
		t.Errorf("more: %d %s", got.status, got.text)
	}
	chunked := must.Get(http.NewRequest("POST", r.URL+"/hooks/supabase", struct{ io.Reader }{strings.NewReader(strings.Repeat("0", 64<<10+1))}))(t)
	if got := readReply(t, must.Get(r.client.Do(chunked))(t)); got.status != 413 || strings.Contains(got.text, "16384") {
		t.Errorf("more in chunks: %d %s", got.status, got.text)
	}
	if got := r.do("POST", "/send-code", appKey, `{"email":"`+strings.Repeat("a", 16<<10)+`"}`); got.status != 413 || !strings.Contains(got.text, "16384 bytes") {
		t.Errorf("another route: %d %s", got.status, got.text)
	}
}

func TestHook_BadCall_SaidInTheSystemsTerms(t *testing.T) {
	r := newRig(t, setup{options: hooksOn(t)})
	for _, test := range []struct {
		want  string
		pairs []string
	}{
		{`{"error":{"http_code":422,"message":"email_action_type: no email of the kind \"mfa_factor_enrolled_notification\" is known"}}`, []string{`:"signup"`, `:"mfa_factor_enrolled_notification"`}},
		{`{"error":{"http_code":422,"message":"user.email: the address has no @"}}`, []string{`"alice@example.com","phone"`, `"alice","phone"`}},
		{`{"error":{"http_code":422,"message":"code must be 4 to 12 of 0-9, A-Z and a-z"}}`, []string{"305805", "30\\u0000"}},
		{`{"error":{"http_code":422,"message":"data has a value that is too long"}}`, []string{"7d5b7b19", strings.Repeat("a", 3000)}},
		{`{"error":{"http_code":422,"message":"data lacks link, which the template needs"}}`, []string{"7d5b7b1964cf5d388340a7f04f1dbb5eeb6c7b52ef8270e1737a58d0", ""}},
	} {
		if got := r.supabase("signup", test.pairs...); got.status != 200 || got.text != test.want {
			t.Errorf("%d %s, want %s", got.status, got.text, test.want)
		}
	}
	if got := r.logto(strings.Replace(signIn, "SignIn", "Newsletter", 1)); got.status != 422 || got.text != `type: no email of the kind "Newsletter" is known` {
		t.Errorf("%d %s", got.status, got.text)
	}
	call := string(must.Get(os.ReadFile("../hooks/testdata/signup.json"))(t))
	compressed := r.sign(call)
	compressed.Set("Content-Encoding", "gzip")
	if got := r.request("POST", "/hooks/supabase", compressed, call); got.status != 200 || !strings.Contains(got.text, `{"http_code":400,`) {
		t.Errorf("compressed: %d %s", got.status, got.text)
	}
	if len(r.Relay.List()) != 0 {
		t.Errorf("%d emails", len(r.Relay.List()))
	}
}

func TestHookLogto_SentAndRefused_InItsTerms(t *testing.T) {
	r := newRig(t, setup{options: hooksOn(t)})
	if got := r.logto(signIn); got.status != 200 || got.text != "" {
		t.Errorf("%d %s", got.status, got.text)
	}
	if mail := r.Mails("foo@example.com"); len(mail) != 1 || !strings.Contains(mail[0], "登录 – Acme") {
		t.Errorf("%+v", mail)
	}
	if got := r.logto(signIn); got.status != 429 || got.text != "The minute limit of this mailbox is reached. Try again in 60 seconds." {
		t.Errorf("%d %s", got.status, got.text)
	}
	invite := `{"to":"bar@example.com","type":"OrganizationInvitation","payload":{"link":"https://app.example/join?a=1&b=2"}}`
	if got := r.logto(invite); got.status != 200 {
		t.Errorf("%d %s", got.status, got.text)
	}
	if mail := r.Mails("bar@example.com"); len(mail) != 1 || !strings.Contains(mail[0], "Accept your invitation – Acme") || !strings.Contains(mail[0], "https://app.example/join?a=1&b=2") {
		t.Errorf("%+v", mail)
	}
	r.do("PUT", "/admin/suppressions/held@example.com", opsKey, `{"reason":"complaint"}`).is(t, 204, "")
	if got := r.logto(strings.Replace(signIn, "foo@", "held@", 1)); got.status != 422 || got.text != "This address does not accept the email." {
		t.Errorf("%d %s", got.status, got.text)
	}
	r.charged("held@example.com", 0)
	r.keys.closed.Store(true) // which a call of Logto does not need
	if got := r.logto(strings.Replace(signIn, "foo@", "baz@", 1)); got.status != 200 {
		t.Errorf("%d %s", got.status, got.text)
	}
	r.Relay.Close()
	if got := r.logto(strings.Replace(signIn, "foo@", "qux@", 1)); got.status != 503 || got.text != "The email could not be sent. Try again in a minute." {
		t.Errorf("%d %s", got.status, got.text)
	}
}

// Each event is sent once, also by a Supabase Auth whose calls have no uuid, and no two events are one.
func TestHookSupabase_OneEvent_OneEmail(t *testing.T) {
	r := newRig(t, setup{options: hooksOn(t), policy: "minute=3/60s"})
	for _, uuid := range []string{"", "", "", "one", "one"} {
		if got := r.supabase("signup", "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d", uuid); got.text != "{}" {
			t.Errorf("uuid %q: %s", uuid, got.text)
		}
	}
	if got := r.supabase("signup", "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d", "one", "305805", "305806"); got.text != "{}" {
		t.Errorf("another event under the uuid: %s", got.text)
	}
	if sent := len(r.Mails("alice@example.com")); sent != 3 {
		t.Errorf("%d emails of 3 events", sent)
	}
}

// A new address that the relay refuses costs the current one neither quota nor a dead code.
func TestHookSupabase_EmailChange_NewAddressRefused_CurrentIsNotCharged(t *testing.T) {
	r := newRig(t, setup{options: hooksOn(t), relay: &fault.Script{At: fault.RCPT, Kind: fault.Permanent, To: "new.example"}})
	if got := r.supabase("email_change"); got.text != `{"error":{"http_code":422,"message":"This address does not accept the email."}}` {
		t.Error(got.text)
	}
	r.do("PUT", "/admin/suppressions/alice@held.example", opsKey, "").is(t, 204, "")
	if got := r.supabase("email_change", "alice@new.example", "alice@held.example"); got.text != `{"error":{"http_code":422,"message":"This address does not accept the email."}}` {
		t.Errorf("to a suppressed address: %s", got.text)
	}
	if got := r.supabase("email_change", "alice@new.example", "alice@other.example"); got.text != "{}" {
		t.Errorf("the corrected change: %s", got.text)
	}
	if sent := r.Relayed(); sent != 2 {
		t.Errorf("%d emails", sent)
	}
}

// A rule by purpose counts each kind of a hook's emails alone.
func TestHook_RuleByPurpose_CountsEachKind(t *testing.T) {
	r := newRig(t, setup{options: hooksOn(t), rules: also("kinds", rules.ByPurpose, "hour=1/1h")})
	for i, test := range []struct{ kind, to, want string }{
		{"signup", "alice@example.com", "{}"},
		{"signup", "bob@example.com", `"http_code":429`},
		{"recovery", "bob@example.com", "{}"},
	} {
		if got := r.supabase("signup", `:"signup"`, `:"`+test.kind+`"`, "alice@example.com", test.to, "9b1deb4d", fmt.Sprintf("9b1deb4%d", i)); !strings.Contains(got.text, test.want) {
			t.Errorf("%s to %s: %s, want %s", test.kind, test.to, got.text, test.want)
		}
	}
}

// The two emails of a change of address are charged both or none.
func TestHookSupabase_EmailChange_BothOrNone(t *testing.T) {
	r := newRig(t, setup{options: hooksOn(t)})
	for _, email := range []string{"alice@new.example", "bob@example.com"} {
		if got := r.send(email); got.status != 200 {
			t.Fatal(got.text)
		}
	}
	if got := r.supabase("email_change"); !strings.Contains(got.text, `"http_code":429`) {
		t.Errorf("the new address has no quota: %s", got.text)
	}
	if got := r.supabase("email_change", "alice@new.example", "carol@new.example", "alice@example.com", "bob@example.com"); !strings.Contains(got.text, `"http_code":429`) {
		t.Errorf("the current address has no quota: %s", got.text)
	}
	for range 2 { // a retry
		if got := r.supabase("email_change", "alice@new.example", "carol@new.example"); got.text != "{}" {
			t.Errorf("a refused change was charged: %s", got.text)
		}
	}
	same(t, r.kept("outcome=sent&door=supabase", "visitor"), "sent 203.0.113.7", "sent 203.0.113.7")
	same(t, r.kept("email=alice@example.com", "key"), "replayed supabase", "sent supabase")
	for to, code := range map[string]string{"alice@example.com": "305805", "carol@new.example": "871923"} {
		if mail := r.Mails(to); len(mail) != 1 || !strings.Contains(mail[0], code) {
			t.Errorf("%s: %+v", to, mail)
		}
	}
}

// Where the second email fails after the first has left, it alone is refunded, and a retry sends it alone.
func TestHookSupabase_EmailChange_SecondFails_ItAloneIsRefunded(t *testing.T) {
	r := newRig(t, setup{options: hooksOn(t), relay: &fault.Script{At: fault.RCPT, Kind: fault.Temporary, To: "example.com", Times: 1}})
	used := func(email string) float64 {
		got := r.do("POST", "/mailboxes/peek", appKey, `{"email":"`+email+`"}`)
		return 1 - got.body["limits"].([]any)[0].(map[string]any)["remaining"].(float64)
	}
	if got := r.supabase("email_change"); got.text != `{"error":{"http_code":503,"message":"The email could not be sent. Try again in a minute."}}` {
		t.Error(got.text)
	}
	if a, b := used("alice@new.example"), used("alice@example.com"); a != 1 || b != 0 {
		t.Errorf("charged %v and %v", a, b)
	}
	if got := r.supabase("email_change"); got.text != "{}" {
		t.Error(got.text)
	}
	if a, b := used("alice@example.com"), used("alice@new.example"); a != 1 || b != 1 {
		t.Errorf("charged %v and %v", a, b)
	}
	if sent := r.Relayed(); sent != 2 {
		t.Errorf("%d emails", sent)
	}
}

// What the relay refused for good, and what it may have taken, is not sent again by a retry.
func TestHookSupabase_Final_IsNotSentAgain(t *testing.T) {
	for _, test := range []struct {
		at   fault.Step
		kind fault.Kind
		want string
	}{
		{fault.RCPT, fault.Permanent, `{"error":{"http_code":422,"message":"This address does not accept the email."}}`},
		{fault.Dot, fault.HangUp, "{}"},
	} {
		t.Run(string(test.at), func(t *testing.T) {
			r := newRig(t, setup{options: hooksOn(t), relay: &fault.Script{At: test.at, Kind: test.kind, Times: 1}})
			for range 2 {
				if got := r.supabase("signup"); got.text != test.want {
					t.Error(got.text)
				}
			}
			if sent := r.Relayed(); sent > 1 {
				t.Errorf("%d emails", sent)
			}
			if got := r.logto(strings.Replace(signIn, "foo@example.com", "alice@example.com", 1)); got.status != 429 {
				t.Errorf("it was refunded: %d %s", got.status, got.text)
			}
		})
	}
}

// An email that is not on its way after three and a half seconds is refunded; one that is, and whose answer
// does not come, is sent for all that Supabase Auth is told, or it would forget the code.
func TestHookSupabase_SlowRelay_AnsweredInTime(t *testing.T) {
	for at, want := range map[fault.Step]string{
		fault.Banner: `{"error":{"http_code":503,"message":"The email could not be sent. Try again in a minute."}}`,
		fault.Dot:    "{}",
	} {
		t.Run(string(at), func(t *testing.T) {
			r := newRig(t, setup{options: hooksOn(t), relay: &fault.Script{At: at, Kind: fault.Silence}})
			began, answers := time.Now(), make(chan string, 2)
			for range 2 { // two tries
				go func() {
					answers <- r.supabase("signup", "2026-11-20T11:59:59.900Z", began.UTC().Format(time.RFC3339Nano)).text
				}()
			}
			for range 2 {
				if got, took := <-answers, time.Since(began); got != want || took > 4900*time.Millisecond {
					t.Errorf("after %s: %s", took, got)
				}
			}
			if sent := r.Relayed(); sent > 1 {
				t.Errorf("%d emails", sent)
			}
			if causes := strings.Join(r.kept("email=alice@example.com", "cause"), "\n"); strings.Contains(causes, "records") {
				t.Errorf("the records are blamed:\n%s", causes)
			}
		})
	}
}

// A try that comes while the one before it is in progress gets its answer.
func TestHookSupabase_TryInProgress_SameAnswer(t *testing.T) {
	r := newRig(t, setup{options: hooksOn(t), relay: &fault.Script{At: fault.Dot, Kind: fault.Drip, DripEvery: 100 * time.Millisecond}})
	answers := make(chan string, 2)
	now := time.Now().UTC().Format(time.RFC3339Nano)
	for range 2 {
		go func() { answers <- r.supabase("signup", "2026-11-20T11:59:59.900Z", now).text }()
	}
	for range 2 {
		if got := <-answers; got != "{}" {
			t.Error(got)
		}
	}
	if sent := r.Relayed(); sent != 1 {
		t.Errorf("%d emails", sent)
	}
}
