package client_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/client"
	"github.com/mailgate/mailgate/internal/must"
)

// A send whose answers are all lost is continued under its key, and is one email.
func TestSend_AnswersLost_SendsOneMail(t *testing.T) {
	s, to := theServer(), newAddress()
	c := newClient(t, newFaults(t, s.URL, 4).URL)
	mail := client.Mail{Email: to, ClientIP: netip.MustParseAddr("fe80::1%eth0")}
	_, err := c.Send(t.Context(), mail)
	uncertain, ok := errors.AsType[*client.UncertainError](err)
	if _, network := errors.AsType[*client.NetworkError](err); !ok || !network {
		t.Fatalf("%v", err)
	}
	mail.Key = uncertain.Key
	sent, err := c.Send(t.Context(), mail)
	if err != nil || !sent.Replayed || sent.Email != to || sent.Wait != time.Minute || sent.ExpiresIn <= 0 || len(s.Mails(to)) != 1 {
		t.Errorf("%+v, %v, %d emails", sent, err, len(s.Mails(to)))
	}
}

func TestSend_FullTier_SaysWhichLimitAndHowLong(t *testing.T) {
	s, to := theServer(), newAddress()
	c := newClient(t, s.URL)
	must.Have(c.Send(t.Context(), client.Mail{Email: to}))
	_, err := c.Send(t.Context(), client.Mail{Email: strings.ToUpper(to)})
	limit, ok := errors.AsType[*client.LimitError](err)
	if !ok {
		t.Fatalf("%v", err)
	}
	if limit.Rule != "mailbox" || limit.Limit != "minute" || limit.Wait <= 0 || limit.Wait > time.Minute || limit.RequestID == "" ||
		!limit.RetryAt.Equal(limit.ServerTime.Add(limit.Wait)) || len(limit.Violated) != 1 || limit.Detail == "" {
		t.Errorf("%+v", limit)
	}
	if l := limit.Limits; len(l) != 3 || l[0].Name != "minute" || l[0].Window != time.Minute || l[1].Limit != 5 || l[1].Remaining != 4 {
		t.Errorf("%+v", limit.Limits)
	}
	quota, err := c.Mailbox(t.Context(), to)
	if err != nil || quota.Limit != "minute" || quota.Wait > limit.Wait || quota.Countdown == "" {
		t.Errorf("%+v, %v", quota, err)
	}
}

func TestSend_InvalidFields_ReportsAll(t *testing.T) {
	_, err := newClient(t, theServer().URL).Send(t.Context(), client.Mail{Email: "alice@", Code: "no way"})
	problem, ok := errors.AsType[*client.APIError](err)
	if !ok || problem.Kind != client.Invalid || problem.Status != 422 || len(problem.Fields) != 2 || problem.Fields[0].Detail == "" {
		t.Errorf("%+v", err)
	}
}

func TestVerify_OtherPurpose_SaysGuessesLeft(t *testing.T) {
	s, to := theServer(), newAddress()
	c := newClient(t, s.URL)
	must.Have(c.Send(t.Context(), client.Mail{Email: to, Purpose: "sign-up"}))
	var problem *client.APIError
	if err := c.Verify(t.Context(), client.Guess{Email: to, Code: s.Code(to)}); !errors.As(err, &problem) || problem.Kind != client.CodeIncorrect || problem.GuessesLeft != 4 {
		t.Errorf("without its purpose: %v", err)
	}
	if err := c.Report(t.Context(), to); err != nil {
		t.Error(err)
	}
	if err := c.Verify(t.Context(), client.Guess{Email: to, Code: s.Code(to), Purpose: "sign-up"}); err != nil {
		t.Errorf("with it: %v", err)
	}
}

func TestTake_AnswerLost_CountsOnce(t *testing.T) {
	s, subject := theServer(), newAddress()
	f := newFaults(t, s.URL, 1)
	c := newClient(t, f.URL)
	taken, err := c.Take(t.Context(), "reply", subject)
	if err != nil || taken.ID == "" || taken.Wait <= 0 || f.requests.Load() != 2 {
		t.Fatalf("%+v, %v, %d requests", taken, err, f.requests.Load())
	}
	if allowed, quota, err := c.Peek(t.Context(), "reply", subject); allowed || quota.Rule != "reply" || err != nil {
		t.Errorf("peek: %v, %+v, %v", allowed, quota, err)
	}
	var limit *client.LimitError
	if _, err := c.Take(t.Context(), "reply", subject); !errors.As(err, &limit) || limit.Rule != "reply" {
		t.Errorf("second take: %v", err)
	}
	var problem *client.APIError
	if _, err := c.Take(t.Context(), "no/such", subject); !errors.As(err, &problem) || problem.Kind != client.UnknownAction {
		t.Errorf("unknown action: %v", err)
	}
}

func TestForCountdown_Sent_IsWhatThePageTakes(t *testing.T) {
	c := newClient(t, play(t, reply{200, sentBody, "Idempotent-Replayed: true"}).URL)
	sent := must.Have(c.Send(t.Context(), client.Mail{Email: "a@example.com"}))
	const want = `{"limit":"minute","wait_ms":54321,"retry_at":"2026-11-20T12:01:00Z",` +
		`"limits":[{"name":"minute","limit":1,"window_ms":60000,"remaining":0,"wait_ms":54321}],"countdown":"t0k3n","replayed":true}`
	if got := string(sent.ForCountdown()); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := string((&client.APIError{}).Quota.ForCountdown()); got != "null" {
		t.Errorf("without a quota: %s", got)
	}
}

// Error texts are logged: whatever the other side writes, they show no key and no address.
func TestErrors_HostileAnswers_ShowNoKeyAndNoAddress(t *testing.T) {
	const to = "alice.liddell@example.com"
	hostile := `{"type":"/docs#` + to + `","detail":"` + key + `","errors":[{"field":"` + to + `","reason":"` + key + ` "}],"rule":"` + to +
		`","limit":"` + to + `","wait_ms":1,"server_time":"2026-11-20T12:00:00Z"}`
	const nowhere = "http://127.0.0.1:1"
	urls := []string{
		play(t, reply{422, hostile, "X-Request-Id: " + to}).URL, play(t, reply{}).URL, play(t, reply{200, to, ""}).URL,
		play(t, reply{429, strings.Replace(hostile, "/docs#"+to, quotaType, 1), ""}).URL,
		play(t, reply{302, "", "Location: http://" + to + "/"}).URL, nowhere, "http://no.such.invalid",
	}
	for _, url := range urls {
		for name, call := range calls {
			err := call(t.Context(), newClient(t, url), to)
			if err == nil || strings.Contains(err.Error(), to) || strings.Contains(err.Error(), key) {
				t.Errorf("%s of %s: %v", name, url, err)
			}
			if got := outcome(err); url == nowhere && got != "network" {
				t.Errorf("without a connection %s is %s", name, got)
			}
		}
	}
	for _, url := range []string{"", "mailgate", "ftp://x", "http://", "http://" + key + "@x", "http://x?" + key, "http://x#" + key, "http://[" + key} {
		if _, err := client.New(url, key); err == nil || strings.Contains(err.Error(), key) {
			t.Errorf("base URL %q: %v", url, err)
		}
	}
	if _, err := client.New("http://x", key+"\n"); err == nil || strings.Contains(err.Error(), key) {
		t.Errorf("key with a line end: %v", err)
	}
}

// A connection that never became one has carried nothing, whatever ended it.
func TestCall_HandshakeFails_IsCertainAndRetried(t *testing.T) {
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	plain := play(t, reply{200, sentBody, ""})
	for name, url := range map[string]string{"untrusted": untrusted.URL, "no TLS": strings.Replace(plain.URL, "http:", "https:", 1)} {
		for call, do := range calls {
			c, dialled := newClient(t, url), 0
			dial := (&net.Dialer{}).DialContext
			c.HTTP.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				dialled++
				return dial(ctx, network, addr)
			}
			if got := outcome(do(t.Context(), c, "a@example.com")); got != "network" || dialled != 4 {
				t.Errorf("%s, %s: %s after %d connections, want network after 4", name, call, got, dialled)
			}
		}
	}
}

func TestCall_ContextEnds_IsItsError(t *testing.T) {
	c := newClient(t, play(t, reply{}).URL)
	c.MaxPause = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Send(ctx, client.Mail{Email: "a@example.com"})
	if got := outcome(err); !errors.Is(err, context.DeadlineExceeded) || !strings.HasSuffix(got, "?") {
		t.Errorf("%v", err)
	}
}

// Proxies log paths.
func TestCall_Address_IsNotInThePath(t *testing.T) {
	s := play(t, reply{200, sentBody, ""})
	for name, call := range calls {
		if err := call(t.Context(), newClient(t, s.URL), "alice.liddell@example.com"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, seen := range s.requests() {
		if strings.Contains(seen.path, "liddell") || !strings.Contains(seen.body, "liddell") {
			t.Errorf("%s, %s", seen.path, seen.body)
		}
	}
}

func TestCall_BadArguments_AskNothing(t *testing.T) {
	s := play(t, reply{200, sentBody, ""})
	c := newClient(t, s.URL)
	for _, bad := range []string{"", ".", ".."} {
		if _, err := c.Take(t.Context(), bad, "x"); err == nil {
			t.Errorf("the action %q was accepted", bad)
		}
	}
	for _, bad := range []string{"a b", "ä", "\x7f", strings.Repeat("k", 256)} {
		if _, err := c.Send(t.Context(), client.Mail{Email: "a@example.com", Key: bad}); err == nil {
			t.Errorf("key %q was accepted", bad)
		}
	}
	if n := len(s.requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
}
