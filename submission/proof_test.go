package submission_test

import (
	"bytes"
	"net/mail"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/proof"
	"github.com/mailgate/mailgate/submission"
)

// withProofs adds the fields of all providers.
func withProofs(t *testing.T) func(*submission.Options) {
	all := must.Get(proof.New([]string{"ses", "sendgrid", "mailgun", "postmark", "resend", "brevo"}, bytes.Repeat([]byte("s"), 32)))(t)
	return func(o *submission.Options) { o.Proofs = all }
}

// Each recipient has a proof in a field that the provider returns, and none for others.
func TestText_Proofs_OneForEachRecipient(t *testing.T) {
	t.Parallel()
	r := start(t, setup{options: withProofs(t)})
	const carol = "carol@example.com"
	proofs := must.Get(proof.New(nil, bytes.Repeat([]byte("s"), 32)))(t)
	c := r.signedIn()
	c.to("Alice+x@example.com", bob)
	c.data(letter, "250")
	c.says("NOOP", "250")
	c.to(carol)
	c.data("x-smtpapi: {\"category\":\"mine\"}\r\n"+letter, "250") // SendGrid obeys one of two
	first, own := r.relay.Mails()[0].Text, r.relay.Mails()[1].Text
	if !bytes.HasSuffix(first, []byte("Message-ID: <1@acme.example>\r\n\r\n123456\r\n..dots\r\n")) {
		t.Errorf("the text is changed: %s", first)
	}
	header := must.Get(mail.ReadMessage(bytes.NewReader(first)))(t).Header
	for mailbox, want := range map[string]bool{"alice+x@example.com": true, bob: true, "alice@example.com": false, carol: false} {
		to := must.Get(address.Parse(mailbox, address.Identity{}))(t)
		for _, field := range []string{"X-Mailgate-Proof", "X-Smtpapi"} {
			if found, _ := proofs.Find(header.Get(field), to, time.Now().UnixMilli()); (found != "") != want {
				t.Errorf("%s in %s: %q", mailbox, field, found)
			}
		}
	}
	if !bytes.HasPrefix(own, []byte("Received: ")) || bytes.Contains(own, []byte("mailgate")) {
		t.Errorf("a text with a field of its own: %s", own)
	}
}
