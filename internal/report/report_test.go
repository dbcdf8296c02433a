package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/wire"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

const noon = int64(1_795_176_000_000) // 2026-11-20T12:00:00Z

// verdict is what the next send is told at a moment, after one at another.
func verdict(t testing.TB, policy string, sent, at int64) throttle.Verdict {
	t.Helper()
	p := throttletest.Policy(t, policy)
	state, _ := p.Take(nil, throttle.Admission{ID: throttle.NewID(), At: sent})
	return p.Peek(state, at)
}

// refused is the decision in which these rules refuse, the first with the longest wait.
func refused(mailbox throttle.Verdict, all ...rules.Refusal) *rules.Decision {
	return &rules.Decision{Rule: all[0].Rule, By: all[0].By, Verdict: all[0].Verdict, Mailbox: mailbox, Refusals: all}
}

// TestReport_EachDecision_InEachForm is the table of what a decision becomes.
func TestReport_EachDecision_InEachForm(t *testing.T) {
	v := verdict(t, "minute=1/60s,hour=5/1h", noon, noon+18_750)
	free := verdict(t, "minute=2/60s", noon-90_000, noon)
	hour := verdict(t, "hour=1/1h", noon, noon)
	own, all := rules.Refusal{Rule: rules.MailboxRule, By: rules.ByMailbox, Key: "a", Verdict: v}, rules.Refusal{Rule: "all", By: rules.ByAll, Key: "all", Verdict: hour}
	visitor := rules.Refusal{Rule: "visitors", By: rules.ByClientIP, Key: "192.0.2.1", Verdict: hour}
	admitted := rules.Decision{Allowed: true, Rule: rules.MailboxRule, By: rules.ByMailbox, Verdict: v, Mailbox: v, Delay: 250, Degraded: true}
	const tiers = `"limits":[{"name":"minute","limit":1,"window_ms":60000,"remaining":0,"wait_ms":41250},{"name":"hour","limit":5,"window_ms":3600000,"remaining":4,"wait_ms":0}]`
	const anHour = `"limit":"hour","wait_ms":3600000,"retry_at":"2026-11-20T13:00:00.000Z","server_time":"2026-11-20T12:00:00.000Z",`
	for _, tt := range []struct {
		name                                       string
		d                                          *rules.Decision
		json, state, policy, attrs, violated, smtp string
	}{
		{"admitted", &admitted,
			`{"rule":"mailbox","limit":"minute","wait_ms":41250,"retry_at":"2026-11-20T12:01:00.000Z","server_time":"2026-11-20T12:00:18.750Z",` + tiers + `,"degraded":true}`,
			`"minute";r=0;t=42;pk=:bWFpbGJveA==:, "hour";r=4;t=3582;pk=:bWFpbGJveA==:`, `"minute";q=1;w=60;pk=:bWFpbGJveA==:, "hour";q=5;w=3600;pk=:bWFpbGJveA==:`,
			"rule=mailbox limit=minute wait_ms=41250 delay_ms=250 degraded=true", "", ""},
		{"refused by the mailbox", refused(v, own),
			`{"rule":"mailbox","limit":"minute","wait_ms":41250,"retry_at":"2026-11-20T12:01:00.000Z","server_time":"2026-11-20T12:00:18.750Z",` + tiers + `,"degraded":false}`,
			`"minute";r=0;t=42;pk=:bWFpbGJveA==:, "hour";r=4;t=3582;pk=:bWFpbGJveA==:`, `"minute";q=1;w=60;pk=:bWFpbGJveA==:, "hour";q=5;w=3600;pk=:bWFpbGJveA==:`,
			"rule=mailbox limit=minute wait_ms=41250", "[minute]", `limit "minute" of this mailbox reached; next email in 41250 ms (42 s) [id]`},
		{"refused by a visitor's rule", refused(free, visitor),
			`{"rule":"visitors",` + anHour + `"limits":[{"name":"minute","limit":2,"window_ms":60000,"remaining":2,"wait_ms":0}],"degraded":false}`,
			`"minute";r=2;t=0;pk=:bWFpbGJveA==:, "visitors.hour";r=0;t=3600;pk=:IzE5Mi4wLjIuMQ==:`, `"minute";q=2;w=60;pk=:bWFpbGJveA==:, "visitors.hour";q=1;w=3600;pk=:IzE5Mi4wLjIuMQ==:`,
			"rule=visitors limit=hour wait_ms=3600000", "[visitors.hour]", `limit "hour" of this visitor's address reached; next email in 3600000 ms (3600 s) [id]`},
		{"refused by two", refused(v, all, own),
			`{"rule":"all",` + anHour + tiers + `,"degraded":false}`,
			`"minute";r=0;t=42;pk=:bWFpbGJveA==:, "hour";r=4;t=3582;pk=:bWFpbGJveA==:, "all.hour";r=0;t=3600`, `"minute";q=1;w=60;pk=:bWFpbGJveA==:, "hour";q=5;w=3600;pk=:bWFpbGJveA==:, "all.hour";q=1;w=3600`,
			"rule=all limit=hour wait_ms=3600000", "[minute all.hour]", `limit "hour" of this service reached; next email in 3600000 ms (3600 s) [id]`},
		{"no rule applies", &rules.Decision{Allowed: true},
			`{"rule":null,"limit":null,"wait_ms":0,"retry_at":"2026-11-20T12:00:00.000Z","server_time":"2026-11-20T12:00:00.000Z","limits":[],"degraded":false}`, "", "", "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := Of(tt.d, "mailbox", func(key string) string { return "#" + key }, noon)
			var o wire.Object
			r.AppendTo(&o)
			policy, state := r.Header()
			for got, want := range map[string]string{
				string(o.End()): tt.json, string(state): tt.state, string(policy): tt.policy, logged(&r): tt.attrs,
			} {
				if got != want {
					t.Errorf("%s, want\n%s", got, want)
				}
			}
			if tt.smtp == "" {
				return
			}
			var problem struct {
				Type, Title string
				Violated    []string `json:"violated-policies"`
			}
			must.OK(t, json.Unmarshal(r.Refusal([]byte("before")), &problem))
			if got := fmt.Sprint(problem.Violated); got != tt.violated || problem.Type != wire.Quota || problem.Title == "" {
				t.Errorf("%+v, want %s", problem, tt.violated)
			}
			if got := r.SMTP("id"); got != tt.smtp {
				t.Errorf("%s, want\n%s", got, tt.smtp)
			}
		})
	}
}

// A visitor reads the wait in the unit that suits it, and never a shorter one.
func TestReport_Words_RoundedUp(t *testing.T) {
	for wait, want := range map[int64]string{1: "2 seconds", 41_250: "42 seconds", 120_000: "120 seconds", 120_001: "3 minutes", 3_540_001: "60 minutes", 7_200_001: "3 hours", 82_800_000: "23 hours"} {
		r := Report{Limit: "day", whose: "this mailbox", Wait: wait}
		if got := r.Words(); got != "The day limit of this mailbox is reached. Try again in "+want+"." {
			t.Errorf("%d: %s", wait, got)
		}
	}
}

// logged are the members of a log line, without quotes.
func logged(r *Report) string {
	var o wire.Object
	r.AppendLog(&o)
	return strings.NewReplacer("{", "", `"`, "", ":", "=", ",", " ").Replace(string(o))
}

// One limiter alone has no rule in its report unless something has to wait.
func TestOfOne_TakenAndRefused_NamesTheRuleOfAWait(t *testing.T) {
	v := verdict(t, "minute=1/60s", noon, noon)
	r := OfOne("reply", "this subject", "", &v)
	r.Countdown = "token"
	const want = `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota exceeded","status":429,` +
		`"detail":"The minute limit of this subject is reached. Try again in 60 s.","rule":"reply","limit":"minute","wait_ms":60000,` +
		`"retry_at":"2026-11-20T12:01:00.000Z","server_time":"2026-11-20T12:00:00.000Z","limits":[{"name":"minute","limit":1,"window_ms":60000,"remaining":0,"wait_ms":60000}],` +
		`"degraded":false,"countdown":"token","violated-policies":["minute"]}`
	if got := string(r.Refusal(nil)); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	if got := string(r.Remaining()); got != `{"rule":"reply","limit":"minute","wait_ms":60000,"retry_at":"2026-11-20T12:01:00.000Z","server_time":"2026-11-20T12:00:00.000Z"}` {
		t.Error(got)
	}
	v = verdict(t, "minute=2/60s", noon, noon)
	if r := OfOne("reply", "", "", &v); r.Rule != "" || r.RetryAfter() != 0 {
		t.Errorf("%+v", r)
	}
}

// Where the clock has stepped back, everything counts from what it shows now.
func TestLimitsOf_ClockStepsBack_WaitsCountFromIt(t *testing.T) {
	v := verdict(t, "minute=1/60s,hour=5/1h", noon, noon-5000)
	r := OfOne("mailbox", "", "", &v)
	if r.Wait != 65_000 || r.Limits[0].Wait != 65_000 || r.Limits[1].Wait != 0 || r.Limits[1].Refill != 3_605_000 {
		t.Errorf("%+v", r)
	}
}

// Windows and waits are rounded up, so that they are long enough.
func TestHeader_ShortWindows_InWholeSeconds(t *testing.T) {
	v := verdict(t, "blink=1/400ms,odd=2/1500ms", noon-1, noon)
	r := OfOne("mailbox", "", "", &v)
	if policy, state := r.Header(); string(state) != `"blink";r=0;t=1, "odd";r=1;t=2` || string(policy) != `"blink";q=1;w=1, "odd";q=2;w=2` {
		t.Errorf("%s; %s", policy, state)
	}
}

// Of a rule that counts several mailboxes together each has a Retry-After of its own, at most 3 % more
// than the wait.
func TestRetryAfter_SharedRule_IsSpread(t *testing.T) {
	day := verdict(t, "day=1/24h", noon, noon)
	for by, apart := range map[rules.By]bool{rules.ByMailbox: false, rules.ByAll: true, rules.ByAPIKey: true} {
		times := map[int64]bool{}
		for i := range 100 {
			of := func() int64 {
				r := Of(refused(day, rules.Refusal{Rule: "day", By: by, Verdict: day}), fmt.Sprint(i), func(string) string { return "" }, noon)
				return r.RetryAfter()
			}
			wait := of()
			if times[wait] = true; wait < 86_400_000 || wait > 86_400_000*103/100 || of() != wait {
				t.Errorf("by %s: %d", by, wait)
			}
		}
		if apart != (len(times) > 90) || !apart && len(times) != 1 {
			t.Errorf("by %s: %d times", by, len(times))
		}
	}
}
