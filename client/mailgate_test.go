package client_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/client"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/servertest"
)

// The tests here are against a mailgate, and a relay behind it.

func TestSendAndWait(t *testing.T) {
	g := newGate(t, nil)
	c, _ := asking(t, g.URL, client.Options{})
	sent, err := c.SendCode(t.Context(), client.Send{Email: "Alice@example.com", Code: "482913", Data: map[string]string{"product": "Acme"}})
	if err != nil || sent.Email != "Alice@example.com" || sent.Limit != "minute" || sent.Wait != time.Minute || sent.Replayed ||
		sent.ExpiresIn != 0 || len(sent.Limits) != 3 || sent.Countdown == "" || !sent.RetryAt.Equal(sent.ServerTime.Add(time.Minute)) {
		t.Fatalf("%+v, %v", sent, err)
	}
	mail := need(g.box.Wait(t.Context(), "Alice@example.com"))
	if !bytes.Contains(mail.Raw, []byte("482913")) || mail.Header.Get("Message-Id") != sent.MessageID {
		t.Errorf("the mail is %s", mail.Raw)
	}

	g.pass(20 * time.Second)
	_, err = c.SendCode(t.Context(), client.Send{Email: "alice+again@example.com"})
	var wait *client.Wait
	if !errors.As(err, &wait) {
		t.Fatal(err)
	}
	if wait.Rule != "mailbox" || wait.Limit != "minute" || wait.Wait != 40*time.Second || !slices.Equal(wait.Violated, []string{"minute"}) ||
		!wait.RetryAt.Equal(sent.RetryAt) || len(wait.Limits) != 3 || wait.Countdown == "" || wait.RequestID == "" || wait.Detail == "" {
		t.Errorf("%+v", wait)
	}
	seen, err := c.Mailbox(t.Context(), "alice@example.com")
	if err != nil || seen.Wait != 40*time.Second || seen.Limits[0].Remaining != 0 || seen.Email != "alice@example.com" {
		t.Errorf("%+v, %v", seen, err)
	}
	g.pass(40 * time.Second)
	if seen, err = c.Mailbox(t.Context(), "alice@example.com"); err != nil || seen.Wait != 0 || seen.Rule != "" || seen.Limit != "" {
		t.Errorf("%+v, %v", seen, err)
	}
}

func TestWhatMailgateRefuses(t *testing.T) {
	g := newGate(t, nil)
	c, _ := asking(t, g.URL, client.Options{})
	_, err := c.SendCode(t.Context(), client.Send{Email: "alice", Code: "?"})
	var p *client.Problem
	if !errors.As(err, &p) || p.Kind != client.Invalid || p.Status != 422 || len(p.Fields) != 2 || p.Fields[0].Field != "email" || p.Fields[0].Reason != "no-at" {
		t.Errorf("%+v, %v", p, err)
	}
	stranger := need(client.New(g.URL, "another-key", client.Options{}))
	t.Cleanup(stranger.CloseIdleConnections)
	for _, name := range callNames() {
		if err := calls[name](t.Context(), stranger); kindOf(err) != string(client.Unauthorized) {
			t.Errorf("%s by a stranger: %v", name, err)
		}
	}
	if _, err := c.Take(t.Context(), "nothing", "user 4711"); kindOf(err) != string(client.UnknownAction) {
		t.Error(err)
	}
	if mails := g.box.List(); len(mails) > 0 {
		t.Errorf("%d mails were sent", len(mails))
	}
}

func TestWhatTheRelayRefuses(t *testing.T) {
	tests := []struct {
		script  fault.Script
		kind    client.Kind
		charged bool
		asked   int // by a client that repeats what can be repeated
	}{
		{fault.Script{At: fault.RCPT, Kind: fault.Permanent}, client.RecipientRejected, true, 1},
		{fault.Script{At: fault.RCPT, Kind: fault.Temporary}, client.RelayUnavailable, false, 2},
		{fault.Script{At: fault.Dot, Kind: fault.HangUp}, client.DeliveryUnknown, true, 1},
	}
	for _, tt := range tests {
		t.Run(string(tt.kind), func(t *testing.T) {
			g := newGate(t, &tt.script)
			between := newLosing(t, g.URL, 0)
			c, _ := asking(t, between.URL, client.Options{Attempts: 2, MaxPause: time.Minute})
			_, err := c.SendCode(t.Context(), client.Send{Email: "alice@example.com"})
			var p *client.Problem
			if !errors.As(err, &p) || p.Kind != tt.kind || (p.Standing != nil) != tt.charged || (p.ID != "") != tt.charged || (p.RetryAfter > 0) == tt.charged {
				t.Fatalf("%+v, %v", p, err)
			}
			if rejected := tt.kind == client.RecipientRejected; rejected != (p.SMTP != nil) || rejected && p.SMTP.Code != 554 {
				t.Errorf("SMTP %+v", p.SMTP)
			}
			if tt.charged && p.Standing.Wait != time.Minute {
				t.Errorf("%+v", p.Standing)
			}
			if got := between.seen(); len(got) != tt.asked {
				t.Errorf("asked %v", got)
			}
		})
	}
}

// The reply is lost after the mail was sent: asked again, mailgate tells what became of
// it, and there is one mail and one charge.
func TestLostReplies(t *testing.T) {
	g := newGate(t, nil)
	between := newLosing(t, g.URL, 3)
	c, _ := asking(t, between.URL, client.Options{})
	sent, err := c.SendCode(t.Context(), client.Send{Email: email})
	if err != nil || !sent.Replayed || sent.Limits[0].Remaining != 0 || sent.Limits[1].Remaining != 4 {
		t.Fatalf("%+v, %v", sent, err)
	}
	if got := fmt.Sprint(between.seen()); got != "[200 200 200 200]" {
		t.Errorf("asked %s", got)
	}
	seen := need(g.operator(t).Inspect(t.Context(), email))
	if mails := g.box.List(); len(mails) != 1 || len(seen.Sends) != 1 || seen.Sends[0].ID != sent.ID {
		t.Errorf("%d mails, and charged %+v", len(mails), seen.Sends)
	}
}

// Where all of a call's attempts failed, its caller may go on later, under the key it is told.
func TestGoingOnUnderAKey(t *testing.T) {
	g := newGate(t, nil)
	between := newLosing(t, g.URL, 4)
	c, _ := asking(t, between.URL, client.Options{})
	send := client.Send{Email: email}
	_, err := c.SendCode(t.Context(), send)
	unsettled, open := errors.AsType[*client.Unsettled](err)
	if !open || kindOf(err) != "no answer" {
		t.Fatal(err)
	}
	g.pass(time.Hour)
	send.Key = unsettled.Key
	sent, err := c.SendCode(t.Context(), send)
	if err != nil || !sent.Replayed || len(g.box.List()) != 1 {
		t.Errorf("%d mails: %+v, %v", len(g.box.List()), sent, err)
	}
	send.Locale = "zh"
	if _, err := c.SendCode(t.Context(), send); kindOf(err) != string(client.KeyMismatch) {
		t.Errorf("another mail under the key: %v", err)
	}
}

// Two clicks, one key: both are told of the one mail.
func TestDoubleClick(t *testing.T) {
	g := newGate(t, nil)
	c := need(client.New(g.URL, key, client.Options{Attempts: 20}))
	t.Cleanup(c.CloseIdleConnections)
	send := client.Send{Email: email, Key: client.NewKey()}
	var all [4]client.Sent
	var errs [4]error
	var clicks sync.WaitGroup
	for i := range all {
		clicks.Go(func() { all[i], errs[i] = c.SendCode(t.Context(), send) })
	}
	clicks.Wait()
	for i := range all {
		if errs[i] != nil || all[i].ID != all[0].ID {
			t.Errorf("click %d: %+v, %v", i, all[i], errs[i])
		}
	}
	if mails := g.box.List(); len(mails) != 1 {
		t.Errorf("%d mails", len(mails))
	}
}

// The connection breaks while the relay still has the mail: asked again, mailgate says
// that it is at work, and then how it ended.
func TestStillAtWork(t *testing.T) {
	g := newGate(t, &fault.Script{At: fault.Dot, Kind: fault.Drip, DripEvery: 100 * time.Millisecond})
	hasMail := func() bool {
		return slices.ContainsFunc(g.bad.Received(), func(b []byte) bool { return bytes.Contains(b, []byte("DATA\r\n")) })
	}
	between := newLosing(t, g.URL, 0)
	straight := httputil.NewSingleHostReverseProxy(need(url.Parse(between.URL)))
	var asked atomic.Int32
	var done sync.WaitGroup
	impatient := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 1 {
			straight.ServeHTTP(w, r)
			return
		}
		body, header := need(io.ReadAll(r.Body)), r.Header.Clone()
		done.Go(func() { forward(t, between.URL, body, header) })
		servertest.Eventually(t, "the relay has the mail", hasMail)
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(func() { impatient.Close(); done.Wait() })
	c := need(client.New(impatient.URL, key, client.Options{Attempts: 20}))
	t.Cleanup(c.CloseIdleConnections)
	sent, err := c.SendCode(t.Context(), client.Send{Email: email})
	if err != nil || !sent.Replayed || len(g.bad.Mails()) != 1 {
		t.Errorf("%d mails: %+v, %v", len(g.bad.Mails()), sent, err)
	}
	if got := between.seen(); !slices.Contains(got, http.StatusConflict) {
		t.Errorf("the answers were %v", got)
	}
}

var sixDigits = regexp.MustCompile(`\b\d{6}\b`)

// codeFor is the code that was mailed.
func (g *gate) codeFor(t testing.TB, email string) string {
	t.Helper()
	mail := need(g.box.Wait(t.Context(), email))
	return sixDigits.FindString(mail.Text)
}

func TestVerifyCode(t *testing.T) {
	g := newGate(t, nil)
	c, _ := asking(t, g.URL, client.Options{})
	ctx := t.Context()
	if err := c.VerifyCode(ctx, email, "123456"); !errors.Is(err, client.ErrCodeExpired) {
		t.Fatalf("before there is a code: %v", err)
	}
	sent := need(c.SendCode(ctx, client.Send{Email: email}))
	code := g.codeFor(t, email)
	wrong := "000000"
	if wrong == code {
		wrong = "000001"
	}
	var incorrect *client.CodeIncorrect
	if err := c.VerifyCode(ctx, email, wrong); !errors.As(err, &incorrect) || incorrect.AttemptsLeft != 4 || sent.ExpiresIn != 10*time.Minute {
		t.Fatalf("a wrong code: %v", err)
	}
	if err := c.VerifyCode(ctx, email, code); err != nil {
		t.Fatalf("the right code: %v", err)
	}
	if err := c.VerifyCode(ctx, email, code); !errors.Is(err, client.ErrCodeExpired) {
		t.Fatalf("the right code again: %v", err)
	}
	g.pass(time.Minute)
	need(c.SendCode(ctx, client.Send{Email: email}))
	var err error
	for range 5 {
		err = c.VerifyCode(ctx, email, wrong)
	}
	var wait *client.Wait
	if !errors.As(err, &wait) || wait.Rule != "guesses" || wait.Wait <= 0 {
		t.Errorf("too many wrong codes: %v", err)
	}
}

// A code is right for the purpose of its send. One without a name is a mistake, and no way to
// go without.
func TestVerifyCodeFor(t *testing.T) {
	g := newGate(t, nil)
	c, _ := asking(t, g.URL, client.Options{})
	ctx := t.Context()
	need(c.SendCode(ctx, client.Send{Email: email, Purpose: "sign-up"}))
	code := g.codeFor(t, email)
	for left, err := range []error{c.VerifyCode(ctx, email, code), c.VerifyCodeFor(ctx, email, code, "reset-password")} {
		var incorrect *client.CodeIncorrect
		if !errors.As(err, &incorrect) || incorrect.AttemptsLeft != 4-left {
			t.Errorf("for another purpose: %v", err)
		}
	}
	for _, purpose := range []string{"", "Sign up"} {
		if err := c.VerifyCodeFor(ctx, email, code, purpose); kindOf(err) != string(client.Invalid) {
			t.Errorf("for the purpose %q: %v", purpose, err)
		}
	}
	if err := c.VerifyCodeFor(ctx, email, code, "sign-up"); err != nil {
		t.Error(err)
	}
	if _, err := c.SendCode(ctx, client.Send{Email: email, Purpose: "sign-up", Code: code}); kindOf(err) != string(client.Invalid) {
		t.Errorf("with a code of the caller's own: %v", err)
	}
}

func TestActions(t *testing.T) {
	g := newGate(t, nil)
	c, _ := asking(t, g.URL, client.Options{})
	ctx := t.Context()
	if peeked := need(c.Peek(ctx, "reply", "user 4711")); !peeked.Allowed || peeked.Wait != 0 {
		t.Errorf("%+v", peeked)
	}
	taken := need(c.Take(ctx, "reply", "user 4711"))
	if taken.ID == "" || taken.Wait != time.Minute || taken.Limit != "minute" {
		t.Errorf("%+v", taken)
	}
	var wait *client.Wait
	if _, err := c.Take(ctx, "reply", "user 4711"); !errors.As(err, &wait) || wait.Rule != "reply" || wait.Wait != time.Minute {
		t.Errorf("%v", err)
	}
	if peeked := need(c.Peek(ctx, "reply", "user 4711")); peeked.Allowed || peeked.Wait != time.Minute {
		t.Errorf("%+v", peeked)
	}
	if !need(c.Release(ctx, "reply", "user 4711", taken.ID)) || need(c.Release(ctx, "reply", "user 4711", taken.ID)) {
		t.Error("not given back once")
	}
	need(c.Take(ctx, "reply", "user 4711"))
	if n := need(g.operator(t).ResetAction(ctx, "reply", "user 4711", "ticket 4711")); n != 1 {
		t.Errorf("%d were forgotten", n)
	}
	need(c.Take(ctx, "reply", "user 4711"))
}

// A take whose reply is lost is asked again, and counts once.
func TestALostTake(t *testing.T) {
	g := newGate(t, nil)
	between := newLosing(t, g.URL, 1)
	c, _ := asking(t, between.URL, client.Options{})
	need(c.Take(t.Context(), "reply", "user 4711"))
	if len(between.seen()) != 2 {
		t.Errorf("asked %v", between.seen())
	}
}

func TestOperator(t *testing.T) {
	g := newGate(t, nil)
	c, _ := asking(t, g.URL, client.Options{})
	ops := g.operator(t)
	ctx := t.Context()
	sent := need(c.SendCode(ctx, client.Send{Email: email}))
	seen := need(ops.Inspect(ctx, email))
	if len(seen.Sends) != 1 || seen.Sends[0].ID != sent.ID || !seen.Sends[0].At.Equal(sent.ServerTime) || seen.Wait != time.Minute || seen.Email != email {
		t.Errorf("%+v", seen)
	}
	if n := need(ops.Reset(ctx, email, "ticket 4711: mistyped")); n != 1 {
		t.Errorf("%d were forgotten", n)
	}
	if n := need(ops.Reset(ctx, email, "")); n != 0 {
		t.Errorf("%d were forgotten", n)
	}
	visitor := netip.MustParseAddr("2001:db8::7")
	need(c.SendCode(ctx, client.Send{Email: email, ClientIP: visitor}))
	if n := need(ops.ResetRule(ctx, "client-ip", visitor.String(), "ticket 4711")); n != 1 {
		t.Errorf("%d were forgotten", n)
	}
	if _, err := ops.ResetRule(ctx, "nothing", visitor.String(), ""); kindOf(err) != string(client.UnknownRule) {
		t.Errorf("a rule that is not there: %v", err)
	}
	if _, err := c.Inspect(ctx, email); kindOf(err) != string(client.Unauthorized) {
		t.Errorf("with an application's key: %v", err)
	}
}
