package submission_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/suppression"
)

func (r *rig) suppress(mailbox string, why suppression.Reason) suppression.Entry {
	r.t.Helper()
	to := must.Get(address.Parse(mailbox, must.Get(address.NewIdentity(true))(r.t)))(r.t)
	must.OK(r.t, r.suppressions.Add(r.t.Context(), to, why, ""))
	return must.Get(r.suppressions.Find(to))(r.t)[0]
}

// A suppressed recipient is refused by name of the reason, and the others get the email.
func TestRcpt_Suppressed_Refused(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	r.suppress("alice+x@example.com", suppression.Complaint)
	r.suppress("carol@example.com", suppression.NotMe)
	c := r.signedIn()
	c.says("MAIL FROM:<no-reply@acme.example>", "250")
	c.says("RCPT TO:<alice@example.com>", "550 5.7.1 this recipient is suppressed: complaint")
	c.says("RCPT TO:<bob@example.com>", "250")
	c.says("RCPT TO:<carol@example.com>", "250")
	c.data(letter, "250")
	r.charged(alice, 0)
	r.charged(bob, 1)
	r.counted("suppressed", 1)
	r.counted("sent", 2)
	if shown := r.shown("suppressed"); len(shown) != 1 || !strings.Contains(shown[0], `"reason":"complaint"`) {
		t.Errorf("operators are shown\n%s", shown)
	}
}

var another = strings.Replace(letter, "<1@", "<2@", 1)

// One email a day reaches an address that bounced.
func TestRcpt_HardBounce_OnceADay(t *testing.T) {
	t.Parallel()
	r := start(t, setup{tiers: "day=100/24h"})
	until := r.suppress(alice, suppression.HardBounce).Until
	c := r.signedIn()
	c.to(alice)
	c.data(letter, "250")
	c.says("NOOP", "250")
	c.says("MAIL FROM:<no-reply@acme.example>", "250")
	c.says("RCPT TO:<alice@example.com>", "550 5.7.1 this recipient is suppressed: hard-bounce until "+time.UnixMilli(int64(until)).UTC().Format(time.RFC3339))
	c.says("RSET", "250")
	r.ahead.Add(86_400_000)
	c.to(alice)
	c.says("RSET", "250")
	c.to(alice) // as the email did not leave
	c.data(another, "250")
	r.sent(2)
}
