package api_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// What a relay's fault is answered with, whether it is charged, and what it is counted as. Visitors can
// name mailboxes that take no email, so a deferred recipient is not counted as a relay failure, which is
// an alert.
func TestSend_RelayFault_Answer(t *testing.T) {
	t.Parallel()
	const charged, free = 1, 0
	tests := []struct {
		name    string
		script  fault.Script
		status  int
		problem string
		used    int
		counted string
	}{
		{"refused recipient", fault.Script{At: fault.RCPT, Kind: fault.Permanent}, 422, "recipient-rejected", charged, "rejected"},
		{"not from us", fault.Script{At: fault.RCPT, Kind: fault.Barred}, 503, "relay-unavailable", free, "deferred"},
		{"not from us, after all", fault.Script{At: fault.Dot, Kind: fault.Barred}, 503, "relay-unavailable", free, "unavailable"},
		{"greylisted", fault.Script{At: fault.RCPT, Kind: fault.Temporary}, 503, "relay-unavailable", free, "deferred"},
		{"silent at RCPT", fault.Script{At: fault.RCPT, Kind: fault.Silence}, 503, "relay-unavailable", free, "deferred"},
		{"leaves", fault.Script{At: fault.MAIL, Kind: fault.Leaving}, 503, "relay-unavailable", free, "unavailable"},
		{"breaks after the final dot", fault.Script{At: fault.Dot, Kind: fault.HangUp}, 504, "delivery-unknown", charged, "unknown"},
		{"silent after the final dot", fault.Script{At: fault.Dot, Kind: fault.Silence}, 504, "delivery-unknown", charged, "unknown"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, setup{relay: &tt.script, options: func(o *apitest.Options) { o.SendDeadline = 3 * time.Second }})
			got := r.send("victim@example.com")
			got.is(t, tt.status, tt.problem)
			r.has(t, `mailgate_sends_total{door="http",limit="",outcome="`+tt.counted+`",rule=""} 1`)
			r.charged("victim@example.com", tt.used)
			if (got.header.Get("Retry-After") != "") != (tt.status == 503) {
				t.Errorf("Retry-After is %q", got.header.Get("Retry-After"))
			}
			if tt.used == charged {
				got.says(t, fields{"limit": "minute", "wait_ms": 60000.0})
			}
			if smtp, ok := got.body["smtp"].(map[string]any); (tt.status == 422) != ok || ok && smtp["code"] != 554.0 {
				t.Errorf("smtp is %v", got.body["smtp"])
			}
			rule := map[int]any{charged: "mailbox"}[tt.used]
			got.logged(t, fields{"cause": something, "id": something, "problem": tt.problem, "rule": rule})
		})
	}
}

// fakeSender ends the hand-over of an email's text in ways that no relay does.
type fakeSender func(ctx context.Context, text []byte) error

func (f fakeSender) Begin(ctx context.Context, _ relay.Envelope) (relay.Tx, error) {
	return fakeTransaction{ctx, f}, nil
}

type fakeTransaction struct {
	ctx    context.Context
	commit fakeSender
}

func (f fakeTransaction) Commit(text []byte) (relay.Receipt, error) {
	return relay.Receipt{}, f.commit(f.ctx, text)
}

func (fakeTransaction) Abort() {}

// gated is a relay that waits for leave to be closed and then fails with an error, if there is one. Or
// its request is cut off.
type gated struct {
	fakeSender
	entered, leave chan struct{}
	fails          error
}

func newGated() *gated {
	g := &gated{entered: make(chan struct{}, 1), leave: make(chan struct{})}
	g.fakeSender = func(ctx context.Context, _ []byte) error {
		g.entered <- struct{}{}
		select {
		case <-g.leave:
			return g.fails
		case <-ctx.Done():
			return &relay.Error{Outcome: relay.Unknown, Err: ctx.Err()}
		}
	}
	return g
}

// An unexpected error or a panic is a 500 that shows nothing of it. The email may have left, so it
// stays charged, and a retry gets the same answer.
func TestSend_UnexpectedFault_Internal(t *testing.T) {
	t.Parallel()
	const secret = "/srv/private.go:17: password hunter2"
	for name, send := range map[string]fakeSender{
		"an unknown error": func(context.Context, []byte) error { return errors.New(secret) },
		"a panic":          func(context.Context, []byte) error { panic(secret) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, setup{options: func(o *apitest.Options) { o.Relay = send }})
			got := r.once("k", "victim@example.com")
			got.is(t, 500, "internal")
			if name == "a panic" {
				got.showsStack(t)
			}
			r.once("k", "victim@example.com").is(t, 500, "internal")
			got.hides(t, "hunter2", ".go", "goroutine", "panic", "map")
			r.charged("victim@example.com", 1)
		})
	}
}

// newFaulty is a rig whose mailboxes' limiter fails on demand.
func newFaulty(t *testing.T, with setup) (*rig, *throttletest.Faulty) {
	f := &throttletest.Faulty{}
	with.rules = func(_ *rig, own *rules.Rule) []rules.Rule {
		own.Limiter = f.Break(own.Limiter)
		return nil
	}
	return newRig(t, with), f
}

// Without its storage each route that needs it is a 503, and a reset says that it may be incomplete.
func TestStorage_Closed_EachRouteIsUnavailable(t *testing.T) {
	r := newRig(t, setup{actions: twoActions, rules: ruleForEach})
	r.Store.Close()
	details := map[string]string{
		"/send-code":                       "The storage cannot be read or written. Nothing was sent.",
		"/verify-code":                     "The code cannot be checked now. A guess may have been counted.",
		"/mailboxes/elsewhere@example.com": "The storage cannot be read or written now. Try again shortly.",
	}
	for _, route := range routesWithKeys {
		if route.path == "/admin/figures" || route.path == whatIf || strings.HasPrefix(route.path, "/admin/requests") {
			continue // they have what they need in memory
		}
		got := r.do(route.method, route.path, route.key(), route.body)
		got.carries(t, map[string]string{"Retry-After": "1"})
		if strings.HasSuffix(route.path, "/reset") {
			got.isNoReset(t, 0)
		} else if got.is(t, 503, "store-unavailable"); details[route.path] != "" {
			got.says(t, fields{"detail": details[route.path]})
		}
	}
	r.sent(0)
}

// isNoReset fails the test unless a reset was refused, in words that are about a reset, and its audit
// line says by whom, how many sends it cleared all the same, and what failed.
func (got reply) isNoReset(t testing.TB, sends int) {
	t.Helper()
	got.is(t, 503, "store-unavailable")
	if detail, _ := got.body["detail"].(string); !strings.HasPrefix(detail, "The reset may be incomplete") || !strings.Contains(detail, "Repeat it") || strings.Contains(detail, "sent") {
		t.Errorf("a reset that failed is told as %q", detail)
	}
	line := got.logged(t, fields{"level": "WARN", "key": "alex", "cleared": float64(sends), "cause": something}, fields{})[0]
	if msg, _ := line["msg"].(string); !strings.HasSuffix(msg, " reset, not completed") {
		t.Errorf("the audit line is %v", line)
	}
}

// A charge that may have been recorded as the history failed is given back.
func TestSend_ChargeUnknown_GivenBack(t *testing.T) {
	r, store := newFaulty(t, setup{})
	store.Fail("taken")
	got := r.send("alice@example.com")
	got.is(t, 503, "store-unavailable")
	got.hides(t, "10.1.2.3")
	servertest.Eventually(t, "the charge is given back", func() bool { return r.used("alice@example.com") == 0 })
}

// A send continues when its caller hangs up, and stays charged.
func TestSend_CallerGone_Continues(t *testing.T) {
	sender := newGated()
	r := newRig(t, setup{options: func(o *apitest.Options) { o.Relay = sender }})
	c := r.dial("")
	c.send("leaver@example.com")
	<-sender.entered
	c.Close()
	close(sender.leave)
	servertest.Eventually(t, "the email is sent", func() bool {
		return strings.Contains(r.has(t), `mailgate_sends_total{door="http",limit="",outcome="sent",rule=""} 1`)
	})
	r.charged("leaver@example.com", 1)
}
