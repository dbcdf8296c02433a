package relay_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/mailgate/mailgate/internal/mailtest"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
)

// These tests hand our email to a real mail server that knows nothing of us, and
// look at what it delivers.

// arrived takes the server's own header off a delivered email and gives both,
// the email with line ends as they were on the wire.
func arrived(t *testing.T, text []byte) (received string, mail []byte) {
	t.Helper()
	end := regexp.MustCompile(`(?s)\AReceived: .*?\n[^ \t]`).FindIndex(text)
	if end == nil {
		t.Fatalf("no Received header on\n%s", text)
	}
	at := end[1] - 1
	return string(text[:at]), bytes.ReplaceAll(text[at:], []byte("\n"), []byte("\r\n"))
}

func TestExim_Composed_ArrivesUnchanged(t *testing.T) {
	const (
		english = "Acme <no-reply@acme.example>"
		chinese = `"阿克米, 公司" <no-reply@acme.example>`
	)
	for name, test := range map[string]struct {
		options mailtest.Options
		relay   func(*mailtest.Server) string
		from    string
		locale  string
	}{
		"English, STARTTLS":    {mailtest.Options{}, (*mailtest.Server).STARTTLS, english, "en"},
		"Chinese, STARTTLS":    {mailtest.Options{}, (*mailtest.Server).STARTTLS, chinese, "zh-Hans-CN"},
		"Chinese, TLS at once": {mailtest.Options{}, (*mailtest.Server).SMTPS, chinese, "zh"},
		"English, AUTH LOGIN":  {mailtest.Options{LoginOnly: true}, (*mailtest.Server).STARTTLS, english, "en"},
	} {
		t.Run(name, func(t *testing.T) {
			server := mailtest.Start(t, test.options)
			m := compose(t, test.from, message.Request{To: parse("Alice@example.com"), Locale: test.locale, Code: "123456", ExpiresInMS: 600_000, ID: "real"})
			receipt := mustSend(t, newRelays(t, steady(), test.relay(server)), m)

			mails := server.Mails(t)
			if len(mails) != 1 || mails[0].From != "no-reply@acme.example" || mails[0].To != "Alice@example.com" {
				t.Fatalf("delivered were %q", mails)
			}
			received, delivered := arrived(t, mails[0].Text)
			if !regexp.MustCompile(`(?i)\swith\s+esmtpsa\s`).MatchString(received) || !strings.Contains(received, "for Alice@example.com;") {
				t.Errorf("the server received it otherwise:\n%s", received)
			}
			if _, entry, ok := strings.Cut(receipt.Reply.Message, "id="); !ok || !strings.Contains(received, entry) {
				t.Errorf("the receipt %q names no email of\n%s", receipt.Reply.Message, received)
			}
			if !bytes.Equal(delivered, m.Bytes) {
				t.Errorf("delivered was\n%s\ncomposed was\n%s", delivered, m.Bytes)
			}
		})
	}
}

// compose makes an email with the built-in templates.
func compose(t testing.TB, from string, request message.Request) message.Message {
	t.Helper()
	sender := must.Get(message.ParseSender(from))(t)
	composer := must.Get(message.NewComposer(sender, must.Get(message.LoadTemplates(nil, "en"))(t)))(t)
	return must.Get(composer.Compose(request))(t)
}

// What the server's refusals mean, and that a refusal leaves the connection in
// step: the email after it goes over the same one.
func TestExim_Refusals_Outcomes(t *testing.T) {
	tests := []struct {
		step    relay.Step
		reply   relay.Reply
		outcome relay.Outcome
	}{
		{relay.StepRCPT, relay.Reply{Code: 550, Enhanced: "5.1.1", Message: "No such mailbox"}, relay.Rejected},
		{relay.StepRCPT, relay.Reply{Code: 550, Message: "Not here"}, relay.Rejected},
		{relay.StepRCPT, relay.Reply{Code: 554, Enhanced: "5.7.1", Message: "Relay access denied"}, relay.Deferred},
		{relay.StepRCPT, relay.Reply{Code: 550, Message: "relay not permitted"}, relay.Deferred},
		{relay.StepRCPT, relay.Reply{Code: 451, Enhanced: "4.7.1", Message: "Come again"}, relay.Deferred},
		{relay.StepFinalDot, relay.Reply{Code: 554, Enhanced: "5.6.0", Message: "Not this text"}, relay.Rejected},
		{relay.StepFinalDot, relay.Reply{Code: 550, Enhanced: "5.7.26", Message: "Sender not authenticated"}, relay.Unavailable},
		{relay.StepFinalDot, relay.Reply{Code: 554, Enhanced: "5.2.252", Message: "SendAsDenied"}, relay.Unavailable},
		{relay.StepFinalDot, relay.Reply{Code: 452, Enhanced: "4.2.2", Message: "Mailbox full"}, relay.Unavailable},
		{relay.StepMAIL, relay.Reply{Code: 550, Enhanced: "5.7.1", Message: "Not your domain"}, relay.Unavailable},
	}
	domain := func(i int) string { return fmt.Sprintf("refused%d.example", i) }
	var refuse []mailtest.Refusal
	for i, test := range tests {
		at := map[relay.Step]string{relay.StepMAIL: "MAIL", relay.StepRCPT: "RCPT", relay.StepFinalDot: "DATA"}[test.step]
		refuse = append(refuse, mailtest.Refusal{At: at, Domain: domain(i), Reply: test.reply.String() + " " + test.reply.Message})
	}
	server := mailtest.Start(t, mailtest.Options{Refuse: refuse})
	relays := newRelays(t, steady(), server.STARTTLS())
	for i, test := range tests {
		t.Run(test.reply.Message, func(t *testing.T) {
			m := to(domain(i))
			if test.step == relay.StepMAIL {
				m.From, m.To = m.To, m.From
			}
			_, err := send(t.Context(), relays, m)
			checkFailure(t, err, test.outcome, test.step, &test.reply)
			mustSend(t, relays, to(fmt.Sprintf("fine%d.example", i)))
		})
	}
	if mails := server.Mails(t); len(mails) != 10 {
		t.Errorf("delivered were %q", mails)
	}
	closeRelays(t, relays)
	servertest.Eventually(t, "three connections end with QUIT: Exim is not sent more than ten emails over one, and another is tried when it refuses MAIL", func() bool {
		log := server.Log()
		return strings.Count(log, "(TCP/IP connection count") == strings.Count(log, "closed by QUIT") &&
			strings.Count(log, "(localhost) [127.0.0.1] closed by QUIT") == 3
	})
}

// Marks that steer a shell, a path or a router steer nothing here: each email is delivered to the
// one recipient that its Address names. Exim delivers the first ten emails of a connection at once
// and leaves more for its next queue run, which may come when the code is no longer valid.
func TestExim_OddAddresses_DeliveredAtOnce(t *testing.T) {
	odd := map[string]int{} // how many emails came, by recipient
	for _, mark := range "#$&'*+-/=?^_`{|}~" {
		for _, form := range []string{"M", "Ma", "aM", "aMb", "MMM", "a.M.b", "/M/", "|M", "?UTF-8?Q?x?M=", "a.b-M", "M.0"} {
			text := strings.ReplaceAll(form, "M", string(mark)) + "@odd.example"
			if _, err := address.Parse(text, address.Identity{}); err == nil {
				odd[text] = 0
			}
		}
	}
	if len(odd) < 150 {
		t.Fatalf("only %d addresses", len(odd))
	}
	server := mailtest.Start(t, mailtest.Options{})
	relays := newRelays(t, steady(), server.STARTTLS())
	var group sync.WaitGroup
	for recipient := range odd {
		group.Go(func() {
			m := letter()
			m.To, m.Bytes = parse(recipient), fmt.Appendf(nil, "Message-ID: <%x@acme.example>\r\n%s", recipient, m.Bytes)
			checkSend(t, t.Context(), relays, m, "")
		})
	}
	group.Wait()
	for _, mail := range server.Mails(t) {
		odd[mail.To]++
		if !bytes.Contains(mail.Text, fmt.Appendf(nil, "Message-ID: <%x@acme.example>\n", mail.To)) {
			t.Errorf("%q got the email of another", mail.To)
		}
	}
	log := server.Log()
	if strings.Contains(log, "no immediate delivery") {
		t.Errorf("not all was delivered at once; the log says:\n%s", log)
	}
	for recipient, emails := range odd {
		if emails != 1 || !strings.Contains(log, " <"+recipient+"> R=") {
			t.Errorf("%q got %d emails", recipient, emails)
		}
	}
}
