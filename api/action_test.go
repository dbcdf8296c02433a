package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// twoActions are one of tiers and one that queues.
func twoActions(r *rig) map[string]*throttle.Limiter {
	return map[string]*throttle.Limiter{
		"reply": r.tiers("action-reply", "minute=2/60s,hour=3/1h"),
		"pace":  r.counted("action-pace", must.Get(throttle.NewLeakyBucket(tier("second", 4, 1000), 2))(r.t)),
	}
}

func (r *rig) act(action, what, body string) reply {
	r.t.Helper()
	return r.do("POST", "/actions/"+action+"/"+what, appKey, body)
}

// An action from its first take to its reset, byte for byte.
func TestAction_TakeToReset_Answers(t *testing.T) {
	r := newRig(t, setup{actions: twoActions})
	const subject = `{"subject":"account 4711"}`
	const free = `"rule":null,"limit":null,"wait_ms":0,"retry_at":"2026-11-20T12:00:00.000Z","server_time":"2026-11-20T12:00:00.000Z","limits":[` +
		`{"name":"minute","limit":2,"window_ms":60000,"remaining":%d,"wait_ms":0},{"name":"hour","limit":3,"window_ms":3600000,"remaining":%d,"wait_ms":0}],"degraded":false}`
	r.act("reply", "peek", subject).reads(t, `{"allowed":true,"action":"reply","subject":"02ffcac22e",`+fmt.Sprintf(free, 2, 3))
	got := r.act("reply", "take", subject)
	got.is(t, 200, "")
	first, _ := got.body["id"].(string)
	got.reads(t, `{"allowed":true,"action":"reply","id":"`+first+`",`+fmt.Sprintf(free, 1, 2))
	got.carries(t, map[string]string{"RateLimit": `"minute";r=1;t=60, "hour";r=2;t=3600`, "RateLimit-Policy": `"minute";q=2;w=60, "hour";q=3;w=3600`})
	line := got.logged(t, fields{"action": "reply", "id": first, "route": "action-take"})[0]

	r.act("reply", "take", subject).is(t, 200, "")
	r.now.Add(1500)
	got = r.act("reply", "take", subject)
	got.is(t, 429, "quota-exceeded")
	got.reads(t, `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota exceeded","status":429,`+
		`"detail":"The minute limit of the action reply for this subject is reached. Try again in 59 s.","rule":"reply",`+
		`"limit":"minute","wait_ms":58500,"retry_at":"2026-11-20T12:01:00.000Z","server_time":"2026-11-20T12:00:01.500Z","limits":[`+
		`{"name":"minute","limit":2,"window_ms":60000,"remaining":0,"wait_ms":58500},{"name":"hour","limit":3,"window_ms":3600000,"remaining":1,"wait_ms":0}],`+
		`"degraded":false,"violated-policies":["minute"]}`)
	got.carries(t, map[string]string{"Retry-After": "59", "RateLimit": `"minute";r=0;t=59, "hour";r=1;t=3599`})
	r.act("reply", "peek", subject).says(t, fields{"allowed": false, "id": nil, "rule": "reply", "wait_ms": 58500.0})
	r.act("reply", "take", `{"subject":"account 4712"}`).is(t, 200, "")

	for _, want := range []string{`{"released":true}`, `{"released":false}`} {
		r.act("reply", "release", `{"subject":"account 4711","id":"`+first+`"}`).reads(t, want)
	}
	r.act("reply", "take", subject).is(t, 200, "")

	got = r.do("POST", "/admin/actions/reply/reset", opsKey, `{"subject":"account 4711","reason":"ticket 9"}`)
	got.reads(t, fmt.Sprintf(`{"action":"reply","subject":%q,"cleared":2}`, line["subject"]))
	got.logged(t, fields{"msg": "action reset", "key": "alex", "reason": "ticket 9", "subject": line["subject"], "cleared": 2.0}, fields{})
	r.act("reply", "take", subject).is(t, 200, "")
	r.has(t,
		`mailgate_actions_total{action="reply",limit="",outcome="taken"} 5`, `mailgate_actions_total{action="reply",limit="minute",outcome="quota-exceeded"} 1`,
		`mailgate_actions_total{action="reply",limit="",outcome="released"} 1`, `mailgate_resets_total 1`,
	)
}

func TestAction_LeakyBucket_TellsDelays(t *testing.T) {
	r := newRig(t, setup{actions: twoActions})
	for _, want := range []any{nil, 250.0, 500.0} {
		r.act("pace", "take", `{"subject":"queued"}`).says(t, fields{"allowed": true, "delay_ms": want})
	}
	got := r.act("pace", "take", `{"subject":"queued"}`)
	got.is(t, 429, "quota-exceeded")
	got.says(t, fields{"wait_ms": 250.0})
	r.now.Add(250)
	r.act("pace", "peek", `{"subject":"queued"}`).says(t, fields{"allowed": true, "delay_ms": 500.0})
}

func TestAction_Invalid_Refused(t *testing.T) {
	r := newRig(t, setup{actions: twoActions})
	for _, route := range []struct{ path, key, more string }{
		{"/actions/%s/take", appKey, ""}, {"/actions/%s/peek", appKey, ""},
		{"/actions/%s/release", appKey, `,"id":"tWudQhxQ"`}, {"/admin/actions/%s/reset", opsKey, ""},
	} {
		ask := func(action, body string) reply { return r.do("POST", fmt.Sprintf(route.path, action), route.key, body) }
		for _, action := range []string{"unknown", "Reply", "rep%6Cy", "a@b"} {
			ask(action, `{"subject":"x"`+route.more+`}`).is(t, 404, "unknown-action")
		}
		for _, body := range []string{`{"subject":1}`, `{"subject":"a\u0000b"}`} {
			ask("reply", body).is(t, 400, "bad-request")
		}
		for value, reason := range map[string]string{
			``: "missing", `"subject":""`: "empty", `"subject":"a\nb"`: "invalid", `"subject":"a\u0085b"`: "invalid",
			`"subject":"a\u007fb"`: "invalid", `"subject":"` + strings.Repeat("é", 129) + `"`: "too-long",
		} {
			ask("reply", "{"+strings.TrimPrefix(value+route.more, ",")+"}").isInvalid(t, "subject:"+reason)
		}
		for _, subject := range []string{strings.Repeat("é", 128), "a/b c+d@e.example", "\u2028", `\"`} {
			ask("reply", `{"subject":"`+subject+`"`+route.more+`}`).is(t, 200, "")
		}
	}
	for _, id := range []string{"", "short", "tWudQhx!", "tWudQhxQQ"} {
		r.act("reply", "release", `{"subject":"x","id":"`+id+`"}`).is(t, 422, "invalid")
	}
	if got := r.act("reply", "release", `{}`); len(got.body["errors"].([]any)) != 2 {
		t.Errorf("answered %s", got.text)
	}
	if schema := theContract.doc.at("components", "schemas", "SubjectText"); schema.members()["maxLength"] != nil {
		t.Error("a schema counts characters, and a subject is counted in bytes")
	}
}

// isInvalid fails the test unless the answer names these fields and reasons, as field:reason.
func (got reply) isInvalid(t testing.TB, want string) {
	t.Helper()
	got.is(t, 422, "invalid")
	var words []string
	for _, entry := range got.body["errors"].([]any) {
		fields := entry.(map[string]any)
		words = append(words, fmt.Sprint(fields["field"], ":", fields["reason"]))
		if detail, _ := fields["detail"].(string); !strings.HasSuffix(detail, ".") {
			t.Errorf("%q is no sentence", detail)
		}
	}
	if have := strings.Join(words, " "); have != want {
		t.Errorf("refused as %s, want %s: %s", have, want, got.text)
	}
}

func (r *rig) takeUnder(key, caller, action, subject string) reply {
	r.t.Helper()
	return r.under(key, caller, "/actions/"+action+"/take", `{"subject":`+quote(subject)+`}`)
}

// A take that is repeated under its key is one, at each node, until it is given back or expires.
func TestAction_RepeatedUnderItsKey_IsOneTake(t *testing.T) {
	r := newRig(t, setup{actions: twoActions})
	take := func(r *rig, key, caller, subject string) string {
		t.Helper()
		got := r.takeUnder(key, caller, "reply", subject)
		got.is(t, 200, "")
		return got.body["id"].(string)
	}
	first := take(r, `"a"`, appKey, "u")
	for _, again := range []*rig{r, r.another()} {
		if id := take(again, "a", appKey, "u"); id != first {
			t.Errorf("repeated it is %s, and was %s", id, first)
		}
	}
	if id := take(r, "a", "another-key", "u"); id == first {
		t.Error("two callers share a take")
	}
	r.takeUnder("b", appKey, "reply", "u").is(t, 429, "quota-exceeded")
	take(r, "a", appKey, "u")
	take(r, "a", appKey, "v")
	r.act("reply", "release", `{"subject":"u","id":"`+first+`"}`).is(t, 200, "")
	take(r, "b", appKey, "u")
	r.takeUnder("a", appKey, "reply", "u").is(t, 429, "quota-exceeded")
	r.now.Add(60_000)
	take(r, "a", appKey, "u")
	r.takeUnder("two, keys", appKey, "reply", "u").is(t, 400, "bad-request")
}

// What a failed take may have recorded is given back, unless its caller may repeat it under its key.
func TestAction_TakeFails_GivenBackWithoutAKey(t *testing.T) {
	var limiter *throttle.Limiter
	store := &throttletest.Faulty{}
	r := newRig(t, setup{actions: func(r *rig) map[string]*throttle.Limiter {
		limiter = store.Break(r.tiers("action-faulty", "minute=2/60s"))
		return map[string]*throttle.Limiter{"faulty": limiter}
	}})
	store.Fail("taken", "release") // so that what is to be given back is given back at the end
	r.act("faulty", "take", `{"subject":"without a key"}`).is(t, 503, "store-unavailable")
	r.takeUnder("a", appKey, "faulty", "with a key").is(t, 503, "store-unavailable")
	store.Fail()
	r.takeUnder("a", appKey, "faulty", "with a key").is(t, 200, "")
	r.shutdown() // which does the refunds that are left
	for subject, want := range map[string]int{"without a key": 0, "with a key": 1} {
		if n := len(must.Get(limiter.History(context.Background(), subject))(t)); n != want {
			t.Errorf("%s: %d are on record, want %d", subject, n, want)
		}
	}
}
