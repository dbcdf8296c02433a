package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle"
)

// threeActions are one of tiers, one that queues, and one whose store fails at will.
func threeActions(f *failing) func(*rig) map[string]throttle.Limiter {
	return func(r *rig) map[string]throttle.Limiter {
		f.Historian = r.counted("action-broken", throttle.DefaultPolicy())
		return map[string]throttle.Limiter{
			"reply":  r.counted("action-reply", must(throttle.ParsePolicy("minute=2/60s,hour=3/1h"))(r.t)),
			"pace":   inMemory(must(throttle.NewLeakyBucket(tier("second", 4, 1000), 2))(r.t), r.now.Load),
			"broken": f,
		}
	}
}

func (r *rig) act(action, what, body string) reply {
	r.t.Helper()
	return r.do("POST", "/actions/"+action+"/"+what, appKey, body)
}

// An action from its first take to its reset, to the letter.
func TestAction(t *testing.T) {
	r := newRig(t, setup{actions: threeActions(&failing{})})
	const subject = `{"subject":"account 4711"}`
	const free = `"rule":null,"limit":null,"wait_ms":0,"retry_at":"2026-11-20T12:00:00.000Z","server_time":"2026-11-20T12:00:00.000Z","limits":[` +
		`{"name":"minute","limit":2,"window_ms":60000,"remaining":%d,"wait_ms":0},{"name":"hour","limit":3,"window_ms":3600000,"remaining":%d,"wait_ms":0}],"degraded":false}`
	if got := r.act("reply", "peek", subject); got.status != 200 || got.text != `{"allowed":true,"action":"reply",`+fmt.Sprintf(free, 2, 3) {
		t.Errorf("peek: %d %s", got.status, got.text)
	}
	got := r.act("reply", "take", subject)
	got.is(t, 200, "")
	first, _ := got.body["id"].(string)
	if got.text != `{"allowed":true,"action":"reply","id":"`+first+`",`+fmt.Sprintf(free, 1, 2) {
		t.Errorf("take: %s", got.text)
	}
	got.carries(t, map[string]string{"RateLimit": `"minute";r=1;t=60, "hour";r=2;t=3600`, "RateLimit-Policy": `"minute";q=2;w=60, "hour";q=3;w=3600`})
	line := journal.about(t, got.header.Get("X-Request-Id"))[0]
	if line["action"] != "reply" || line["subject"] == nil || line["id"] != first || line["route"] != "action-take" {
		t.Errorf("the log says %v", line)
	}

	r.act("reply", "take", subject).is(t, 200, "")
	r.now.Add(1500)
	got = r.act("reply", "take", subject)
	got.is(t, 429, "quota-exceeded")
	want := `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota exceeded","status":429,` +
		`"detail":"The minute limit of the action reply for this subject is reached. Try again in 59 s.","rule":"reply",` +
		`"limit":"minute","wait_ms":58500,"retry_at":"2026-11-20T12:01:00.000Z","server_time":"2026-11-20T12:00:01.500Z","limits":[` +
		`{"name":"minute","limit":2,"window_ms":60000,"remaining":0,"wait_ms":58500},{"name":"hour","limit":3,"window_ms":3600000,"remaining":1,"wait_ms":0}],` +
		`"degraded":false,"violated-policies":["minute"]}`
	if got.text != want {
		t.Errorf("answered\n%s, want\n%s", got.text, want)
	}
	got.carries(t, map[string]string{"Retry-After": "59", "RateLimit": `"minute";r=0;t=59, "hour";r=1;t=3599`})
	if got := r.act("reply", "peek", subject); got.body["allowed"] != false || got.body["id"] != nil || got.body["rule"] != "reply" || got.body["wait_ms"] != 58500.0 {
		t.Errorf("peek: %s", got.text)
	}
	r.act("reply", "take", `{"subject":"account 4712"}`).is(t, 200, "")

	for i, want := range []string{`{"released":true}`, `{"released":false}`} {
		if got := r.act("reply", "release", `{"subject":"account 4711","id":"`+first+`"}`); got.status != 200 || got.text != want {
			t.Errorf("release %d: %d %s", i+1, got.status, got.text)
		}
	}
	r.act("reply", "take", subject).is(t, 200, "")

	got = r.do("POST", "/admin/actions/reply/reset", opsKey, `{"subject":"account 4711","reason":"ticket 9"}`)
	if want := fmt.Sprintf(`{"action":"reply","subject":%q,"cleared":2}`, line["subject"]); got.status != 200 || got.text != want {
		t.Errorf("reset: %d %s, want %s", got.status, got.text, want)
	}
	lines := journal.about(t, got.header.Get("X-Request-Id"))
	if len(lines) != 2 || lines[0]["msg"] != "action reset" || lines[0]["key"] != "alex" || lines[0]["reason"] != "ticket 9" || lines[0]["subject"] != line["subject"] || lines[0]["cleared"] != 2.0 {
		t.Errorf("the log says %v", lines)
	}
	r.act("reply", "take", subject).is(t, 200, "")
	text := r.do("GET", "/metrics", "", "").text
	for _, want := range []string{
		`mailgate_actions_total{action="reply",limit="",outcome="taken"} 5`, `mailgate_actions_total{action="reply",limit="minute",outcome="denied"} 1`,
		`mailgate_actions_total{action="reply",limit="",outcome="released"} 1`, `mailgate_resets_total 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}

// An action that queues tells each its turn.
func TestActionThatQueues(t *testing.T) {
	r := newRig(t, setup{actions: threeActions(&failing{})})
	for i, want := range []any{nil, 250.0, 500.0} {
		if got := r.act("pace", "take", `{"subject":"in-line"}`); got.status != 200 || got.body["delay_ms"] != want {
			t.Errorf("take %d: %d %s", i+1, got.status, got.text)
		}
	}
	got := r.act("pace", "take", `{"subject":"in-line"}`)
	got.is(t, 429, "quota-exceeded")
	if got.body["wait_ms"] != 250.0 {
		t.Errorf("answered %s", got.text)
	}
	r.now.Add(250)
	if got := r.act("pace", "peek", `{"subject":"in-line"}`); got.body["allowed"] != true || got.body["delay_ms"] != 500.0 {
		t.Errorf("peek: %s", got.text)
	}
}

// A take of each way to count is given back by its id, once and at its own time; in a queue
// only the newest, as those behind it keep the position that they were told.
func TestActionRelease_EachWayToCount_GivesBackByID(t *testing.T) {
	hour := tier("hour", 2, 3_600_000)
	ways := map[string]throttle.Algorithm{
		"tiers":          must(throttle.NewPolicy(hour))(t),
		"fixed-window":   must(throttle.NewFixedWindow(hour))(t),
		"sliding-window": must(throttle.NewSlidingWindow(hour, 60))(t),
		"token-bucket":   must(throttle.NewTokenBucket(hour, 2))(t),
		"leaky-bucket":   must(throttle.NewLeakyBucket(hour, 1))(t),
	}
	r := newRig(t, setup{actions: func(r *rig) map[string]throttle.Limiter {
		all := map[string]throttle.Limiter{}
		for name, a := range ways {
			all[name] = r.counted("action-"+name, a)
		}
		return all
	}})
	for name := range ways {
		t.Run(name, func(t *testing.T) {
			release := func(id any) string {
				t.Helper()
				got := r.act(name, "release", fmt.Sprintf(`{"subject":"s","id":%q}`, id))
				got.is(t, 200, "")
				return got.text
			}
			first := r.act(name, "take", `{"subject":"s"}`).body["id"]
			r.now.Add(1000)
			second := r.act(name, "take", `{"subject":"s"}`).body["id"]
			r.act(name, "take", `{"subject":"s"}`).is(t, 429, "quota-exceeded")
			r.now.Add(1000)
			if got := release(throttle.NewID()); got != `{"released":false}` {
				t.Errorf("an id of no take: %s", got)
			}
			want := fmt.Sprintf(`{"released":%t}`, name != "leaky-bucket")
			if got := release(first); got != want {
				t.Errorf("the first: %s, want %s", got, want)
			}
			if got := release(second); got != `{"released":true}` {
				t.Errorf("the second: %s", got)
			}
			if name == "leaky-bucket" { // which would take the first for it
				return
			}
			if got := release(second); got != `{"released":false}` {
				t.Errorf("the second once more: %s", got)
			}
			r.act(name, "take", `{"subject":"s"}`).is(t, 200, "")
		})
	}
}

// What will not do, on every route of actions.
func TestActionRefusals(t *testing.T) {
	r := newRig(t, setup{actions: threeActions(&failing{})})
	const sound = `"id":"tWudQhxQ"`
	for _, route := range []struct{ path, key, more string }{
		{"/actions/%s/take", appKey, ""}, {"/actions/%s/peek", appKey, ""},
		{"/actions/%s/release", appKey, "," + sound}, {"/admin/actions/%s/reset", opsKey, ""},
	} {
		ask := func(action, key, body string) reply { return r.do("POST", fmt.Sprintf(route.path, action), key, body) }
		for _, action := range []string{"unknown", "Reply", "rep%6Cy", "a@b"} {
			ask(action, route.key, `{"subject":"x"`+route.more+`}`).is(t, 404, "unknown-action")
		}
		ask("reply", "", `{"subject":"x"}`).is(t, 401, "unauthorized")
		for _, body := range []string{"", "{", `{"subject":1}`, `{"subject":"a","subject":"b"}`, `{"subject":"x","other":"y"}`, `{"subject":"a\u0000b"}`, "{\"subject\":\"\xff\"}"} {
			ask("reply", route.key, body).is(t, 400, "bad-request")
		}
		ask("reply", route.key, `{"subject":"`+strings.Repeat("x", 16<<10)+`"}`).is(t, 413, "body-too-large")
		for value, reason := range map[string]string{
			``: "missing", `"subject":""`: "empty", `"subject":"a\nb"`: "invalid",
			`"subject":"a\u0085b"`: "invalid", `"subject":"a\u007fb"`: "invalid", `"subject":"` + strings.Repeat("é", 129) + `"`: "too-long",
		} {
			fields := strings.TrimPrefix(value+route.more, ",")
			got := ask("reply", route.key, "{"+fields+"}")
			got.is(t, 422, "invalid")
			wrong := got.body["errors"].([]any)[0].(map[string]any)
			if wrong["field"] != "subject" || wrong["reason"] != reason {
				t.Errorf("%s: %s", value, got.text)
			}
		}
		for _, subject := range []string{strings.Repeat("é", 128), "a/b c+d@e.example", "\u2028", `\"`} {
			if got := ask("reply", route.key, `{"subject":"`+subject+`"`+route.more+`}`); got.status != 200 {
				t.Errorf("%s: %d %s", subject, got.status, got.text)
			}
		}
		page := r.request("POST", fmt.Sprintf(route.path, "reply"), nil, "")
		page.is(t, 401, "unauthorized")
	}
	for _, id := range []string{"", "short", "tWudQhx!", "tWudQhxQQ"} {
		r.act("reply", "release", `{"subject":"x","id":"`+id+`"}`).is(t, 422, "invalid")
	}
	got := r.act("reply", "release", `{}`)
	got.is(t, 422, "invalid")
	if len(got.body["errors"].([]any)) != 2 {
		t.Errorf("answered %s", got.text)
	}
	r.do("POST", "/admin/actions/reply/reset", opsKey, `{"subject":"x","reason":"`+strings.Repeat("口", 500)+`"}`).is(t, 200, "")
	r.do("POST", "/admin/actions/reply/reset", opsKey, `{"subject":"x","reason":"`+strings.Repeat("x", 501)+`"}`).is(t, 422, "invalid")
	if schema := theContract.at("#/components/schemas/SubjectText"); schema.members()["maxLength"] != nil {
		t.Error("a schema counts characters, and a subject is counted in bytes")
	}
}

// Without its store an action is neither allowed nor refused, and what a failed take may
// have recorded is given back.
func TestActionStoreUnavailable(t *testing.T) {
	store := &failing{recorded: true}
	r := newRig(t, setup{actions: threeActions(store)})
	store.take.Store(true)
	store.rest.Store(true)
	const subject = `{"subject":"unlucky"}`
	r.act("broken", "take", subject).is(t, 503, "store-unavailable")
	r.act("broken", "peek", subject).is(t, 503, "store-unavailable")
	notReset(t, r.do("POST", "/admin/actions/broken/reset", opsKey, `{"subject":"unlucky","reason":"ticket 9"}`), "action", 0)
	servertest.Eventually(t, "the place is given back", func() bool {
		return len(must(store.History(context.Background(), "unlucky"))(t)) == 0
	})
	store.release.Store(true)
	r.act("broken", "release", `{"subject":"unlucky","id":"tWudQhxQ"}`).is(t, 503, "store-unavailable")
}

func (r *rig) takeUnder(key, caller, action, subject string) reply {
	r.t.Helper()
	return r.request("POST", "/actions/"+action+"/take", http.Header{
		"Authorization": {"Bearer " + caller}, "Content-Type": {"application/json"}, "Idempotency-Key": {key},
	}, `{"subject":`+quote(subject)+`}`)
}

// A take that is asked again under its key is one, at whichever server, and until it is given
// back or counts no more.
func TestATakeAskedAgain(t *testing.T) {
	r := newRig(t, setup{actions: threeActions(&failing{})})
	take := func(r *rig, key, caller, subject string) string {
		t.Helper()
		got := r.takeUnder(key, caller, "reply", subject)
		got.is(t, 200, "")
		return got.body["id"].(string)
	}
	first := take(r, `"a"`, appKey, "u")
	for _, again := range []*rig{r, r.another()} {
		if id := take(again, "a", appKey, "u"); id != first {
			t.Errorf("asked again it is %s, and was %s", id, first)
		}
	}
	if id := take(r, "a", "another-key", "u"); id == first {
		t.Error("two callers share a take")
	}
	got := r.takeUnder("b", appKey, "reply", "u")
	got.is(t, 429, "quota-exceeded")
	take(r, "a", appKey, "u")
	take(r, "a", appKey, "v")
	r.act("reply", "release", `{"subject":"u","id":"`+first+`"}`).is(t, 200, "")
	take(r, "b", appKey, "u")
	r.takeUnder("a", appKey, "reply", "u").is(t, 429, "quota-exceeded")
	r.now.Add(60_000)
	take(r, "a", appKey, "u")
	r.takeUnder("two, keys", appKey, "reply", "u").is(t, 400, "bad-request")
}

// What may have been charged under a key is found by whoever asks again, so it is not given back
// behind his back.
func TestATakeAskedAgainAfterAFailure(t *testing.T) {
	store := &failing{recorded: true}
	r := newRig(t, setup{actions: threeActions(store)})
	store.take.Store(true)
	store.release.Store(true) // what is to be given back is so when the server ends
	r.takeUnder("a", appKey, "broken", "u").is(t, 503, "store-unavailable")
	store.take.Store(false)
	r.takeUnder("a", appKey, "broken", "u").is(t, 200, "")
	store.release.Store(false)
	r.shutdown()
	if n := len(must(store.History(context.Background(), "u"))(t)); n != 1 {
		t.Errorf("%d are on record", n)
	}
}

// Many takes at once are exactly as many as the limit says.
func TestActionUnderARace(t *testing.T) {
	r := newRig(t, setup{actions: threeActions(&failing{})})
	var taken atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			if r.act("reply", "take", `{"subject":"crowd"}`).status == 200 {
				taken.Add(1)
			}
		})
	}
	wg.Wait()
	if taken.Load() != 2 {
		t.Errorf("%d were let through, want 2", taken.Load())
	}
}
