package client_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/client"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/rules"
)

// A challenge comes with what its page needs, and its solution sends.
func TestSend_Challenge_IsToldAndSolved(t *testing.T) {
	t.Parallel()
	s := apitest.Start(func(s *apitest.Server, o *apitest.Options) {
		limiter := func(name, tiers string) *throttle.Limiter {
			return local.New(s.Store.Table(name), must.Have(throttle.ParsePolicy(tiers)))
		}
		o.Live.Rules = must.Have(rules.New(rules.Options{Tokens: limiter("tokens", "token=1/20m")},
			rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: s.Mailboxes},
			rules.Rule{Name: "all", By: rules.ByAll, Limiter: limiter("all", "hour=1/1h"), Challenge: true}))
	})
	t.Cleanup(func() { must.OK(t, s.Close()) })
	c := newClient(t, s.URL)
	must.Get(c.Send(t.Context(), client.Mail{Email: "a@example.com"}))(t)
	_, err := c.Send(t.Context(), client.Mail{Email: "b@example.com"})
	asked, ok := errors.AsType[*client.APIError](err)
	if !ok || asked.Kind != client.ChallengeRequired || asked.Status != 403 || asked.Quota == nil || asked.Quota.Rule != "all" {
		t.Fatalf("%v", err)
	}
	page := asked.Quota.ForCountdown()
	if what := []byte(`{"altcha":{"algorithm":"SHA-256",`); !bytes.Contains(page, what) || !bytes.Contains(asked.Challenge, what) {
		t.Errorf("the page gets %s of %s", page, asked.Challenge)
	}
	must.Get(c.Send(t.Context(), client.Mail{Email: "b@example.com", Challenge: apitest.Solve(page)}))(t)
}
