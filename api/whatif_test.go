package api_test

import (
	"context"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

const whatIf = "/admin/what-if"

// Other tiers are tried on the recorded sends, and nothing is changed. The answer has today's tiers to
// compare, the mailboxes with the most refusals, and the sends of the mailbox that
// was asked for.
func TestWhatIf_OtherTiers_CountsRefusals(t *testing.T) {
	r := newRig(t, setup{})
	first := r.now.Load()
	for range 3 {
		r.send("often@example.com").is(t, 200, "")
		r.now.Add(60_000)
	}
	r.send("once@example.com").is(t, 200, "")
	for tiers, want := range map[string]string{
		"minute=1/60s":               `"tiers":"minute=1/60s","mailboxes":2,"sends":4,"refused":0,"affected":0,"limits":[{"name":"minute","limit":1,"window_ms":60000,"refused":0}],"complete":true`,
		"day=3/24h, pause=1/60001ms": `"tiers":"pause=1/60001ms,day=3/24h","mailboxes":2,"sends":4,"refused":1,"affected":1,"limits":[{"name":"pause","limit":1,"window_ms":60001,"refused":1},{"name":"day","limit":3,"window_ms":86400000,"refused":0}],"complete":true`,
		"day=1/24h":                  `"tiers":"day=1/24h","mailboxes":2,"sends":4,"refused":2,"affected":1,"limits":[{"name":"day","limit":1,"window_ms":86400000,"refused":2}],"complete":true`,
	} {
		got := r.do("POST", whatIf, opsKey, `{"tiers":`+quote(tiers)+`}`)
		got.is(t, 200, "")
		got.contains(t, "{"+want+",")
	}
	got := r.do("POST", whatIf, opsKey, `{"tiers":"pause=1/60001ms","email":"Often+x@example.com"}`)
	got.contains(t,
		`"today":[{"name":"minute","limit":1,"window_ms":60000},{"name":"hour","limit":5,"window_ms":3600000},{"name":"day","limit":10,"window_ms":86400000}]`,
		`"mailbox":{"email":"often@example.com","sends":["`+stamp(first)+`","`+stamp(first+60_000)+`","`+stamp(first+120_000)+`"],"refused":[{"at":"`+stamp(first+60_000)+`","limit":"pause"}]}`,
		`"worst":[{"email":"often@example.com","sends":["`,
	)
	if worst := got.body["worst"].([]any); len(worst) != 1 {
		t.Errorf("%d mailboxes are shown: %s", len(worst), got.text)
	}
	r.charged("often@example.com", 3)
	r.now.Add(86_400_000)
	r.do("POST", whatIf, opsKey, `{"tiers":"day=1/24h"}`).says(t, fields{"mailboxes": 0.0}) // all have left every tier
}

func TestWhatIf_Invalid_Refused(t *testing.T) {
	r := newRig(t, setup{})
	for tiers, want := range map[string]string{
		"":                    "A policy needs at least one tier, such as minute=1/60s.",
		"hour=0/1h":           "Tier hour: the limit must be between 1 and 1000, not 0.",
		"hour=5/1h,hour=6/2h": "Tier hour: the name is used twice.",
		"<script>":            `Tier "<script>": write it as name=limit/window, such as minute=1/60s.`,
	} {
		got := r.do("POST", whatIf, opsKey, `{"tiers":`+quote(tiers)+`}`)
		got.is(t, 422, "invalid")
		if entry := got.body["errors"].([]any)[0].(map[string]any); entry["field"] != "tiers" || entry["detail"] != want {
			t.Errorf("%q: %v", tiers, entry)
		}
	}
	r.do("POST", whatIf, opsKey, `{}`).isInvalid(t, "tiers:missing")
	r.do("POST", whatIf, opsKey, `{"tiers":"pause=1/2m","email":"no-at"}`).isInvalid(t, "email:no-at")
	r.do("POST", whatIf, opsKey, `{"tiers":"pause","email":"no-at"}`).isInvalid(t, "email:no-at tiers:invalid")
}

// walker is a home whose states are given by a test.
type walker struct {
	throttle.Home
	each func(ctx context.Context, visit func(key string, state []byte, now int64) bool) error
}

func (w *walker) Each(ctx context.Context, visit func(key string, state []byte, now int64) bool) error {
	return w.each(ctx, visit)
}

// walking is a setup with a walker.
func walking(each func(context.Context, func(string, []byte, int64) bool) error, options func(*apitest.Options)) setup {
	return setup{options: options, rules: func(_ *rig, own *rules.Rule) []rules.Rule {
		own.Limiter = throttle.New(own.Limiter.Algorithm, &walker{own.Limiter.Home, each})
		return nil
	}}
}

// A trial is limited in mailboxes and in time, and says whether it is complete.
func TestWhatIf_ManyMailboxesOrSlow_IsIncomplete(t *testing.T) {
	t.Parallel()
	one, _ := throttle.DefaultPolicy().Take(nil, throttle.Admission{ID: throttle.NewID(), At: 1})
	for _, tt := range []struct {
		name    string
		each    func(context.Context, func(string, []byte, int64) bool) error
		options func(*apitest.Options)
		want    string
	}{
		{"one more", func(_ context.Context, visit func(string, []byte, int64) bool) error {
			for n := 0; n < 100_001 && visit("one@example.com", one, 1); {
				n++
			}
			return nil
		}, func(o *apitest.Options) { o.SendDeadline = 10 * time.Minute }, `"mailboxes":100000,"sends":100000,"refused":0,"affected":0,"limits":[{"name":"hour","limit":1,"window_ms":3600000,"refused":0}],"complete":false,`},
		{"until its time is over", func(ctx context.Context, visit func(string, []byte, int64) bool) error {
			visit("one@example.com", one, 1)
			<-ctx.Done()
			visit("one@example.com", one, 1)
			return ctx.Err()
		}, func(o *apitest.Options) { o.SendDeadline = 500 * time.Millisecond }, `"mailboxes":1,"sends":1,"refused":0,"affected":0,"limits":[{"name":"hour","limit":1,"window_ms":3600000,"refused":0}],"complete":false,`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := newRig(t, walking(tt.each, tt.options)).do("POST", whatIf, opsKey, `{"tiers":"hour=1/1h"}`)
			got.contains(t, tt.want)
		})
	}
}

func TestWhatIf_Simultaneous_OneAtATime(t *testing.T) {
	began, goOn := make(chan struct{}, 2), make(chan struct{})
	r := newRig(t, walking(func(context.Context, func(string, []byte, int64) bool) error {
		began <- struct{}{}
		<-goOn
		return nil
	}, nil))
	first := make(chan reply)
	go func() { first <- r.do("POST", whatIf, opsKey, `{"tiers":"hour=1/1h"}`) }()
	<-began
	got := r.do("POST", whatIf, opsKey, `{"tiers":"hour=1/1h"}`)
	got.is(t, 409, "trial-in-progress")
	got.carries(t, map[string]string{"Retry-After": "1"})
	r.do("POST", tryRules, opsKey, "").is(t, 409, "trial-in-progress")
	close(goOn)
	(<-first).is(t, 200, "")
	r.do("POST", whatIf, opsKey, `{"tiers":"hour=1/1h"}`).is(t, 200, "")
}
