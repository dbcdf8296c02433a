package client_test

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/client"
	"github.com/mailgate/mailgate/idempotency"
)

// wire is what the answers of script_test.go say.
func wire(rule string) client.Standing {
	server := time.Date(2026, 11, 20, 12, 0, 5, 679_000_000, time.UTC)
	return client.Standing{
		Rule: rule, Limit: "minute", Wait: 54321 * time.Millisecond, RetryAt: time.Date(2026, 11, 20, 12, 1, 0, 0, time.UTC), ServerTime: server,
		Limits: []client.Limit{{Name: "minute", Limit: 1, Window: time.Minute, Wait: 54321 * time.Millisecond}},
	}
}

// Every field of an answer is where a caller looks for it.
func TestWhatIsRead(t *testing.T) {
	counted := wire("mailbox")
	counted.Countdown = "t0k3n"
	server := play(t,
		line{status: 200, body: sentBody, header: map[string]string{"Idempotent-Replayed": "true"}},
		line{status: 200, body: `{"email":"` + email + `","rule":"mailbox",` + standing + `}`},
		line{status: 200, body: `{"allowed":true,"action":"reply","id":"tWudQhxQ","delay_ms":1500,` + standing + `}`},
		line{status: 200, body: `{"allowed":false,"action":"reply",` + standing + `}`},
		line{status: 200, body: `{"released":true}`},
		line{status: 200, body: `{"email":"` + email + `","rule":null,` + standing + `,"sends":[{"id":"tWudQhxQ","at":"2026-11-20T12:00:05.679Z"}],"guesses":[{"name":"day","limit":20,"window_ms":86400000,"remaining":15,"wait_ms":1}],"more":1}`},
		line{status: 200, body: `{"email":"` + email + `","cleared":2}`},
		line{status: 200, body: `{"action":"reply","cleared":0}`},
		line{status: 200, body: `{"verified":true}`},
	)
	c, _ := asking(t, server.URL, client.Options{})
	ctx := t.Context()
	is := func(got any, err error) func(want any) {
		return func(want any) {
			t.Helper()
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("\n got %+v, %v\nwant %+v", got, err, want)
			}
		}
	}
	sent, err := c.SendCode(ctx, client.Send{Email: email})
	is(sent, err)(client.Sent{Standing: counted, ID: "tWudQhxQ", MessageID: "<tWudQhxQ.97e4@acme.example>", Email: email, ExpiresIn: 10 * time.Minute, Replayed: true})
	mailbox, err := c.Mailbox(ctx, email)
	is(mailbox, err)(client.Mailbox{Standing: wire("mailbox"), Email: email})
	taken, err := c.Take(ctx, "reply", "user 4711")
	is(taken, err)(client.Taken{Standing: wire(""), ID: "tWudQhxQ", Delay: 1500 * time.Millisecond})
	peeked, err := c.Peek(ctx, "reply", "user 4711")
	is(peeked, err)(client.Peeked{Standing: wire(""), Allowed: false})
	released, err := c.Release(ctx, "reply", "user 4711", "tWudQhxQ")
	is(released, err)(true)
	inspection, err := c.Inspect(ctx, email)
	is(inspection, err)(client.Inspection{Mailbox: client.Mailbox{Standing: wire(""), Email: email},
		Sends:   []client.Admission{{ID: "tWudQhxQ", At: wire("").ServerTime}},
		Guesses: []client.Limit{{Name: "day", Limit: 20, Window: 24 * time.Hour, Remaining: 15, Wait: time.Millisecond}}})
	cleared, err := c.Reset(ctx, email, "")
	is(cleared, err)(2)
	cleared, err = c.ResetAction(ctx, "reply", "user 4711", "")
	is(cleared, err)(0)
	is(nil, c.VerifyCode(ctx, email, "123456"))(nil)
}

// A refusal is of the type that says what it is.
func TestRefusals(t *testing.T) {
	waiting := wire("mailbox")
	waiting.Countdown = "t0k3n"
	charged := wire("mailbox")
	problem := func(status int, kind, more string) line {
		return line{status: status, body: `{"type":"urn:mailgate:problem:` + kind + `","status":1,"detail":"A sentence."` + more + `}`, header: map[string]string{"X-Request-Id": "r1"}}
	}
	tests := []struct {
		name  string
		line  line
		want  error
		reads string
	}{
		{"a wait", line{429, waitBody, map[string]string{"X-Request-Id": "r1"}},
			&client.Wait{Standing: waiting, Violated: []string{"minute", "visitor.hour"}, Detail: "The limit minute of this mailbox is reached.", RequestID: "r1"},
			"mailgate says to wait 54.321s: limit minute of rule mailbox is reached"},
		{"fields", problem(422, "invalid", `,"errors":[{"field":"email","reason":"no-at","detail":"The address has no @."},{"field":"data.x y","reason":"invalid","detail":""}]`),
			&client.Problem{Kind: client.Invalid, Status: 422, Detail: "A sentence.", RequestID: "r1",
				Fields: []client.Field{{Field: "email", Reason: "no-at", Detail: "The address has no @."}, {Field: "data.x y", Reason: "invalid"}}},
			"mailgate says invalid (422): email no-at, ? invalid, request r1"},
		{"a recipient", problem(422, "recipient-rejected", `,"smtp":{"code":550,"enhanced":"5.1.1","message":"No such mailbox"},"id":"tWudQhxQ","rule":"mailbox",`+standing),
			&client.Problem{Kind: client.RecipientRejected, Status: 422, Detail: "A sentence.", RequestID: "r1", ID: "tWudQhxQ", Standing: &charged,
				SMTP: &client.SMTP{Code: 550, Enhanced: "5.1.1", Message: "No such mailbox"}},
			"mailgate says recipient-rejected (422), request r1"},
		{"an odd kind", problem(418, strings.Repeat("teapot-", 10), ""), &client.Problem{Kind: client.Kind(strings.Repeat("teapot-", 10)), Status: 418, Detail: "A sentence.", RequestID: "r1"},
			"mailgate says ? (418), request r1"},
		{"a kind as long as may be", problem(418, strings.Repeat("az-09.AZ", 8), ""), &client.Problem{Kind: client.Kind(strings.Repeat("az-09.AZ", 8)), Status: 418, Detail: "A sentence.", RequestID: "r1"},
			"mailgate says " + strings.Repeat("az-09.AZ", 8) + " (418), request r1"},
		{"a kind that is no word", problem(418, "tea/pot", ""), &client.Problem{Kind: "tea/pot", Status: 418, Detail: "A sentence.", RequestID: "r1"}, "mailgate says ? (418), request r1"},
		{"a wrong code, and nothing said of others", problem(422, "code-incorrect", ""), &client.Problem{Kind: "code-incorrect", Status: 422, Detail: "A sentence.", RequestID: "r1"},
			"mailgate says code-incorrect (422), request r1"},
		{"a wrong code", problem(422, "code-incorrect", `,"attempts_left":4`), &client.CodeIncorrect{AttemptsLeft: 4, RequestID: "r1"}, "the code is wrong, 4 more may be tried"},
		{"the last wrong code", problem(422, "code-incorrect", `,"attempts_left":0`), &client.CodeIncorrect{RequestID: "r1"}, "the code is wrong, 0 more may be tried"},
		{"no code", problem(410, "code-expired", ""), client.ErrCodeExpired, "there is no code to check any more"},
		{"no mailgate", line{400, "no JSON", nil}, &client.Problem{Status: 400}, "something that is not mailgate answers 400"},
		{"no mailgate's JSON", line{429, `{"type":"about:blank","detail":"Slow down.","limit":3}`, nil}, &client.Problem{Status: 429}, "something that is not mailgate answers 429"},
		{"another's problem", line{429, `{"type":"about:blank","detail":"Slow down."}`, nil}, &client.Problem{Status: 429, Detail: "Slow down."}, "something that is not mailgate answers 429"},
		{"a wait of a minute", line{429, "", map[string]string{"Retry-After": "60"}}, &client.Problem{Status: 429, RetryAfter: time.Minute}, "something that is not mailgate answers 429"},
		{"a date to wait for, and none to count from", line{429, "", map[string]string{"Date": "today", "Retry-After": "Fri, 20 Nov 2026 12:00:02 GMT"}}, &client.Problem{Status: 429}, "something that is not mailgate answers 429"},
		{"a wait that cannot be", line{429, strings.ReplaceAll(waitBody, "54321", "-1"), nil}, &client.Problem{Status: 429}, "something that is not mailgate answers 429"},
		{"a wait without end", line{429, strings.ReplaceAll(waitBody, "54321", "9300000000000000"), nil}, &client.Problem{Status: 429}, "something that is not mailgate answers 429"},
		{"a wait that is no answer to this", line{400, waitBody, nil}, &client.Problem{Status: 400, Detail: "The limit minute of this mailbox is reached."}, "something that is not mailgate answers 400"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := asking(t, play(t, tt.line).URL, client.Options{})
			_, err := c.SendCode(t.Context(), client.Send{Email: email})
			got := errors.Unwrap(err)
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("\n got %#v\nwant %#v", got, tt.want)
			}
			if fmt.Sprint(err) != "sending a code: "+tt.reads {
				t.Errorf("it reads %q", err)
			}
		})
	}
}

// What is written is what openapi.yaml asks for, and what is empty is left out.
func TestWhatIsWritten(t *testing.T) {
	ctx := t.Context()
	tests := []struct {
		want string
		call func(c *client.Client)
	}{
		{`POST /send-code {"email":"a@example.com"}`, func(c *client.Client) { c.SendCode(ctx, client.Send{Email: "a@example.com"}) }},
		{`POST /send-code {"email":"a@example.com","code":"4711","template":"login","locale":"zh","client_ip":"2001:db8::1","data":{"product":"Acme"}}`,
			func(c *client.Client) {
				c.SendCode(ctx, client.Send{Email: "a@example.com", Code: "4711", Template: "login", Locale: "zh",
					ClientIP: netip.MustParseAddr("2001:db8::1%eth0"), Data: map[string]string{"product": "Acme"}})
			}},
		{`GET /mailboxes/a%2Fb+c%3F%25@example.com `, func(c *client.Client) { c.Mailbox(ctx, "a/b+c?%@example.com") }},
		{`POST /send-code {"email":"a@example.com","purpose":"sign-up"}`, func(c *client.Client) { c.SendCode(ctx, client.Send{Email: "a@example.com", Purpose: "sign-up"}) }},
		{`POST /verify-code {"email":"a@example.com","code":"123456"}`, func(c *client.Client) { c.VerifyCode(ctx, "a@example.com", "123456") }},
		{`POST /verify-code {"email":"a@example.com","code":"123456","purpose":"sign-up"}`, func(c *client.Client) { c.VerifyCodeFor(ctx, "a@example.com", "123456", "sign-up") }},
		{`POST /verify-code {"email":"a@example.com","code":"123456","purpose":""}`, func(c *client.Client) { c.VerifyCodeFor(ctx, "a@example.com", "123456", "") }},
		{`POST /actions/reply/take {"subject":"user 4711"}`, func(c *client.Client) { c.Take(ctx, "reply", "user 4711") }},
		{`POST /actions/a%2Fb/peek {"subject":"user 4711"}`, func(c *client.Client) { c.Peek(ctx, "a/b", "user 4711") }},
		{`POST /actions/reply/release {"subject":"user 4711","id":"tWudQhxQ"}`, func(c *client.Client) { c.Release(ctx, "reply", "user 4711", "tWudQhxQ") }},
		{`GET /admin/mailboxes/%E4@example.com `, func(c *client.Client) { c.Inspect(ctx, "\xe4@example.com") }},
		{`POST /admin/mailboxes/a@example.com/reset {"reason":"ticket 4711"}`, func(c *client.Client) { c.Reset(ctx, "a@example.com", "ticket 4711") }},
		{`POST /admin/mailboxes/a@example.com/reset {}`, func(c *client.Client) { c.Reset(ctx, "a@example.com", "") }},
		{`POST /admin/actions/reply/reset {"subject":"","reason":"why"}`, func(c *client.Client) { c.ResetAction(ctx, "reply", "", "why") }},
		{`POST /admin/rules/client-ip/reset {"subject":"198.51.100.7","reason":"why"}`, func(c *client.Client) { c.ResetRule(ctx, "client-ip", "198.51.100.7", "why") }},
		{`POST /admin/rules/provider/reset {}`, func(c *client.Client) { c.ResetRule(ctx, "provider", "", "") }},
	}
	for _, tt := range tests {
		server := play(t, problem(401, "unauthorized"))
		c, _ := asking(t, server.URL+"/", client.Options{})
		tt.call(c)
		q := server.questions()[0]
		if got := q.method + " " + q.path + " " + q.body; got != tt.want {
			t.Errorf("\n got %s\nwant %s", got, tt.want)
		}
		if json := q.header.Get("Content-Type") == "application/json"; json != (q.body != "") {
			t.Errorf("%s: Content-Type %q", tt.want, q.header.Get("Content-Type"))
		}
		if q.header.Get("User-Agent") != "mailgate-go" || q.header.Get("Accept") != "application/json, application/problem+json" {
			t.Errorf("%s: asked with %v", tt.want, q.header)
		}
	}
}

// A mailgate may be below a path, and one on this machine may have no keys.
func TestWhereMailgateIs(t *testing.T) {
	server := play(t, line{status: 200, body: sentBody})
	c, err := client.New(server.URL+"/gate/", "", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	if err := calls["send"](t.Context(), c); err != nil {
		t.Fatal(err)
	}
	q := server.questions()[0]
	if _, has := q.header["Authorization"]; has || q.path != "/gate/send-code" {
		t.Errorf("%+v", q)
	}
}

// A key that is given is the one that is used, as mailgate reads it.
func TestGivenKeys(t *testing.T) {
	server := play(t, line{status: 200, body: sentBody})
	c, _ := asking(t, server.URL, client.Options{})
	for _, given := range []string{"k", "!~", `say_"hi"\now\\"`, "order-4711,2;x", strings.Repeat("k", 255)} {
		if _, err := c.SendCode(t.Context(), client.Send{Email: email, Key: given}); err != nil {
			t.Fatal(err)
		}
		all := server.questions()
		field := all[len(all)-1].header.Get("Idempotency-Key")
		if got, err := idempotency.ParseKey(field); err != nil || got != given {
			t.Errorf("%q was sent as %s, which mailgate reads as %q, %v", given, field, got, err)
		}
	}
	asked := len(server.questions())
	for _, given := range []string{"a b", "käse", "a\n", "a\x7f", strings.Repeat("k", 256)} {
		if _, err := c.SendCode(t.Context(), client.Send{Email: email, Key: given}); !errors.Is(err, client.ErrKey) {
			t.Errorf("%q: %v", given, err)
		}
	}
	if len(server.questions()) != asked {
		t.Error("a key that will not do was sent")
	}
}

// Keys are made alike by nobody, and mailgate takes them.
func TestNewKey(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		made := client.NewKey()
		seen[made] = true
		if _, err := idempotency.ParseKey(made); err != nil {
			t.Error(err)
		}
	}
	if len(seen) != 100 {
		t.Errorf("%d keys of 100", len(seen))
	}
}

// What names nothing is not asked about: its path would be that of another question.
func TestArgumentsThatNameNothing(t *testing.T) {
	server := play(t, line{status: 404})
	c := need(client.New(server.URL, key, client.Options{}))
	for _, none := range []string{"", ".", ".."} {
		for doing, call := range map[string]func() error{
			"the email of Mailbox":      func() error { _, err := c.Mailbox(t.Context(), none); return err },
			"the email of Inspect":      func() error { _, err := c.Inspect(t.Context(), none); return err },
			"the email of Reset":        func() error { _, err := c.Reset(t.Context(), none, ""); return err },
			"the action of Take":        func() error { _, err := c.Take(t.Context(), none, "u"); return err },
			"the action of Peek":        func() error { _, err := c.Peek(t.Context(), none, "u"); return err },
			"the action of Release":     func() error { _, err := c.Release(t.Context(), none, "u", "id"); return err },
			"the action of ResetAction": func() error { _, err := c.ResetAction(t.Context(), none, "u", ""); return err },
			"the rule of ResetRule":     func() error { _, err := c.ResetRule(t.Context(), none, "u", ""); return err },
		} {
			err := call()
			if what, _, _ := strings.Cut(doing, " of "); !errors.Is(err, client.ErrArgument) || !strings.Contains(err.Error(), what) {
				t.Errorf("%s %q: %v", doing, none, err)
			}
		}
	}
	if len(server.asked) != 0 {
		t.Errorf("%d were asked", len(server.asked))
	}
}
