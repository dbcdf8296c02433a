package mailer_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mailgate/mailgate/mailer"
	"github.com/mailgate/mailgate/internal/mailtest"
	"github.com/mailgate/mailgate/servertest"
)

// These tests hand our mail to a real mail server that knows nothing of us, and
// look at what it delivers.

// arrived takes the server's own header off a delivered mail and gives both,
// the mail with line ends as they were on the wire.
func arrived(t *testing.T, text []byte) (received string, mail []byte) {
	t.Helper()
	end := regexp.MustCompile(`(?s)\AReceived: .*?\n[^ \t]`).FindIndex(text)
	if end == nil {
		t.Fatalf("no Received header on\n%s", text)
	}
	at := end[1] - 1
	return string(text[:at]), bytes.ReplaceAll(text[at:], []byte("\n"), []byte("\r\n"))
}

func TestRealServerGetsWhatWasComposed(t *testing.T) {
	const (
		english = "Acme <no-reply@acme.example>"
		chinese = `"阿克米, 公司" <no-reply@acme.example>`
	)
	for _, test := range []struct {
		name     string
		options  mailtest.Options
		relay    func(*mailtest.Server) string
		from     string
		fromName string
		locale   string
		subject  string
		words    string
	}{
		{"English, STARTTLS", mailtest.Options{}, (*mailtest.Server).STARTTLS, english, "Acme", "en",
			"123456 is your code", "Your Acme code is\n\n    123456\n"},
		{"Chinese, STARTTLS", mailtest.Options{}, (*mailtest.Server).STARTTLS, chinese, "阿克米, 公司", "zh-Hans-CN",
			"123456 是您的验证码", "您的 阿克米, 公司 验证码是\n\n    123456\n"},
		{"Chinese, TLS at once", mailtest.Options{}, (*mailtest.Server).SMTPS, chinese, "阿克米, 公司", "zh",
			"123456 是您的验证码", "有效时间为 10 分钟。"},
		{"English, AUTH LOGIN", mailtest.Options{LoginOnly: true}, (*mailtest.Server).STARTTLS, english, "Acme", "en",
			"123456 is your code", "It is valid for 10 minutes."},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := mailtest.Start(t, test.options)
			request := sampleRequest(t)
			request.Locale = test.locale
			message, err := newComposer(t, test.from, nil, rand.Reader).Compose(request)
			if err != nil {
				t.Fatal(err)
			}
			receipt := mustSend(t, newRelays(t, steady(), test.relay(server)), message)

			received, mail := arrived(t, server.Await(t, "Alice@example.com"))
			if !regexp.MustCompile(`(?i)\swith\s+esmtpsa\s`).MatchString(received) || !strings.Contains(received, "for Alice@example.com;") {
				t.Errorf("the server received it otherwise:\n%s", received)
			}
			if _, entry, ok := strings.Cut(receipt.Reply.Message, "id="); !ok || !strings.Contains(received, entry) {
				t.Errorf("the receipt %q names no mail of\n%s", receipt.Reply.Message, received)
			}
			if !bytes.Equal(mail, message.Bytes) {
				t.Errorf("delivered was\n%s\ncomposed was\n%s", mail, message.Bytes)
			}
			back, composed := read(t, mailer.Message{Bytes: mail}), read(t, message)
			checkHeaders(t, message, back, test.fromName)
			if subject := subjectOf(t, back); subject != test.subject {
				t.Errorf("Subject %q", subject)
			}
			if back.text != composed.text || !strings.Contains(back.text, test.words) {
				t.Errorf("the text is\n%s", back.text)
			}
			if back.html != composed.html || !strings.Contains(back.html, ">123456</p>") {
				t.Errorf("the HTML is\n%s", back.html)
			}
			if mails := server.Mails(t); len(mails) != 1 || mails[0].From != "no-reply@acme.example" {
				t.Errorf("delivered were %q", mails)
			}
		})
	}
}

// Lines that begin with dots, composed and raw, and octets above 127.
func TestRealServerKeepsEveryOctet(t *testing.T) {
	const dots = "{{.Code}}\n.\n..\n.hidden\n...\n\n.{{.Data.name}}\n."
	composer := newComposer(t, "no-reply@acme.example",
		files("dots/en/subject.txt", ".{{.Code}}", "dots/en/text.txt", dots, "dots/en/body.html", "<p>\n.\n..{{.Code}}\n.</p>\n.\n"), rand.Reader)
	request := sampleRequest(t)
	request.Template, request.Data = "dots", map[string]string{"name": "."}
	composed, err := composer.Compose(request)
	if err != nil {
		t.Fatal(err)
	}
	raw, eight := letter(), letter()
	eight.To = "eight@secret.example"
	eight.Bytes = bytes.ReplaceAll(eight.Bytes, []byte("bye"), []byte("züß\xff\x80 验证码"))

	server := mailtest.Start(t, mailtest.Options{})
	relays := newRelays(t, steady(), server.STARTTLS())
	for _, message := range []mailer.Message{composed, raw, eight} {
		mustSend(t, relays, message)
		if _, mail := arrived(t, server.Await(t, message.To)); !bytes.Equal(mail, message.Bytes) {
			t.Errorf("delivered was\n%q\nsent was\n%q", mail, message.Bytes)
		}
	}
	_, mail := arrived(t, server.Await(t, composed.To))
	want := strings.NewReplacer("{{.Code}}", "123456", "{{.Data.name}}", ".").Replace(dots)
	if back := read(t, mailer.Message{Bytes: mail}); strings.TrimSuffix(back.text, "\n") != want {
		t.Errorf("the text is\n%s\nwant\n%s", back.text, want)
	}
	if mails := server.Mails(t); len(mails) != 3 {
		t.Errorf("%d mails arrived", len(mails))
	}
}

// What the server's refusals mean, and that a refusal leaves the connection in
// step: the mail after it goes over the same one.
func TestRealServerRefuses(t *testing.T) {
	server := mailtest.Start(t, mailtest.Options{Refuse: []mailtest.Refusal{
		{At: "MAIL", Domain: "spoofed.example", Reply: "550 5.7.1 Not your domain"},
		{At: "RCPT", Domain: "empty.example", Reply: "550 5.1.1 No such mailbox"},
		{At: "RCPT", Domain: "plain.example", Reply: "550 Not here"},
		{At: "RCPT", Domain: "closed.example", Reply: "554 5.7.1 Relay access denied"},
		{At: "RCPT", Domain: "barred.example", Reply: "550 relay not permitted"},
		{At: "RCPT", Domain: "grey.example", Reply: "451 4.7.1 Come again"},
		{At: "DATA", Domain: "picky.example", Reply: "554 5.6.0 Not this text"},
		{At: "DATA", Domain: "wary.example", Reply: "550 5.7.26 Sender not authenticated"},
		{At: "DATA", Domain: "tenant.example", Reply: "554 5.2.252 SendAsDenied"},
		{At: "DATA", Domain: "full.example", Reply: "452 4.2.2 Mailbox full"},
	}})
	options := steady()
	options.MaxMailsPerConn = 100
	relays := newRelays(t, options, server.STARTTLS())
	for i, test := range []struct {
		from, to string
		outcome  mailer.Outcome
		step     mailer.Step
		reply    mailer.Reply
	}{
		{"a@acme.example", "a@empty.example", mailer.Rejected, mailer.StepRCPT, mailer.Reply{Code: 550, Enhanced: "5.1.1", Message: "No such mailbox"}},
		{"a@acme.example", "a@plain.example", mailer.Rejected, mailer.StepRCPT, mailer.Reply{Code: 550, Message: "Not here"}},
		{"a@acme.example", "a@closed.example", mailer.Unavailable, mailer.StepRCPT, mailer.Reply{Code: 554, Enhanced: "5.7.1", Message: "Relay access denied"}},
		{"a@acme.example", "a@barred.example", mailer.Unavailable, mailer.StepRCPT, mailer.Reply{Code: 550, Message: "relay not permitted"}},
		{"a@acme.example", "a@grey.example", mailer.Unavailable, mailer.StepRCPT, mailer.Reply{Code: 451, Enhanced: "4.7.1", Message: "Come again"}},
		{"a@acme.example", "a@picky.example", mailer.Rejected, mailer.StepFinalDot, mailer.Reply{Code: 554, Enhanced: "5.6.0", Message: "Not this text"}},
		{"a@acme.example", "a@wary.example", mailer.Unavailable, mailer.StepFinalDot, mailer.Reply{Code: 550, Enhanced: "5.7.26", Message: "Sender not authenticated"}},
		{"a@acme.example", "a@tenant.example", mailer.Unavailable, mailer.StepFinalDot, mailer.Reply{Code: 554, Enhanced: "5.2.252", Message: "SendAsDenied"}},
		{"a@acme.example", "a@full.example", mailer.Unavailable, mailer.StepFinalDot, mailer.Reply{Code: 452, Enhanced: "4.2.2", Message: "Mailbox full"}},
		{"a@spoofed.example", "a@fine.example", mailer.Unavailable, mailer.StepMAIL, mailer.Reply{Code: 550, Enhanced: "5.7.1", Message: "Not your domain"}},
	} {
		t.Run(test.reply.Message, func(t *testing.T) {
			message := letter()
			message.From, message.To = test.from, test.to
			_, err := relays.Send(t.Context(), message)
			checkFailure(t, err, test.outcome, test.step, &test.reply)
			message = letter()
			message.To = fmt.Sprintf("after%d@fine.example", i)
			mustSend(t, relays, message)
			server.Await(t, message.To)
		})
	}
	if mails := server.Mails(t); len(mails) != 10 {
		t.Errorf("delivered were %q", mails)
	}
	if n := connectionsMade(t, relays, server); n != 1 {
		t.Errorf("%d connections were made", n)
	}
}

func checkFailure(t *testing.T, err error, outcome mailer.Outcome, step mailer.Step, reply *mailer.Reply) {
	t.Helper()
	failure, ok := errors.AsType[*mailer.SendError](err)
	if !ok || failure.Outcome != outcome || failure.Step != step {
		t.Fatalf("%v, want %v at %s", err, outcome, step)
	}
	if reply != nil && (failure.Reply == nil || *failure.Reply != *reply) {
		t.Errorf("the reply is %+v, want %+v", failure.Reply, *reply)
	}
}

// connectionsMade closes the relays, which must end every connection with QUIT,
// and counts them. Those that named nobody are the server's own trial of being
// there.
func connectionsMade(t *testing.T, relays *mailer.Relays, server *mailtest.Server) int {
	t.Helper()
	closeRelays(t, relays)
	servertest.Eventually(t, "every connection ends with QUIT", func() bool {
		log := server.Log()
		return strings.Count(log, "(TCP/IP connection count") == strings.Count(log, "closed by QUIT")
	})
	return strings.Count(server.Log(), "(localhost) [127.0.0.1] closed by QUIT")
}

// Settings that cannot work are the operator's trouble, and nobody's charge.
func TestRealServerIsNotReached(t *testing.T) {
	server, other := mailtest.Start(t, mailtest.Options{}), mailtest.Start(t, mailtest.Options{})
	with := func(address string, change func(*url.URL)) string {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		change(u)
		return u.String()
	}
	wrongPassword := func(u *url.URL) { u.User = url.UserPassword(server.User, "wrong") }
	noPassword := func(u *url.URL) { u.User = nil }
	otherCA := func(u *url.URL) { u.RawQuery = url.Values{"ca": {other.CA}}.Encode() }
	systemCA := func(u *url.URL) { u.RawQuery = "" }
	otherName := func(u *url.URL) { u.RawQuery += "&servername=mail.acme.example" }
	for _, test := range []struct {
		name string
		url  string
		step mailer.Step
		code int
	}{
		{"wrong password", with(server.STARTTLS(), wrongPassword), mailer.StepAUTH, 535},
		{"wrong password, TLS at once", with(server.SMTPS(), wrongPassword), mailer.StepAUTH, 535},
		{"no password", with(server.STARTTLS(), noPassword), mailer.StepRCPT, 530},
		{"no password, no TLS", "smtp://" + server.Addr + "?tls=none", mailer.StepRCPT, 530},
		{"another authority", with(server.STARTTLS(), otherCA), mailer.StepTLS, 0},
		{"another authority, TLS at once", with(server.SMTPS(), otherCA), mailer.StepTLS, 0},
		{"the system's authorities", with(server.STARTTLS(), systemCA), mailer.StepTLS, 0},
		{"another name", with(server.SMTPS(), otherName), mailer.StepTLS, 0},
		{"TLS at once where STARTTLS is", with(server.STARTTLS(), func(u *url.URL) { u.Scheme = "smtps" }), mailer.StepTLS, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := newRelays(t, steady(), test.url).Send(t.Context(), letter())
			checkFailure(t, err, mailer.Unavailable, test.step, nil)
			if failure, _ := errors.AsType[*mailer.SendError](err); test.code != 0 && (failure.Reply == nil || failure.Reply.Code != test.code) {
				t.Errorf("the reply is %+v, want %d", failure.Reply, test.code)
			}
			for _, secret := range []string{"secret.example", "wrong", server.Password, other.CA} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error shows too much: %v", err)
				}
			}
		})
	}
	for _, s := range []*mailtest.Server{server, other} {
		if mails := s.Mails(t); len(mails) != 0 {
			t.Errorf("delivered were %q", mails)
		}
	}
}

// oddAddresses are accepted addresses whose local part is more than letters,
// digits and dots: those of the table, and every mark in every place.
func oddAddresses(t *testing.T) []mailer.Address {
	t.Helper()
	texts := []string{}
	for _, row := range addressRows(t) {
		texts = append(texts, row.wire)
	}
	for _, mark := range "#$&'*+-/=?^_`{|}~" {
		for _, form := range []string{"M", "Ma", "aM", "aMb", "MMM", "a.M.b", "/M/", "|M", "?UTF-8?Q?x?M="} {
			texts = append(texts, strings.ReplaceAll(form, "M", string(mark))+"@odd.example")
		}
	}
	slices.Sort(texts)
	var odd []mailer.Address
	for _, text := range slices.Compact(texts) {
		if local, _, _ := strings.Cut(text, "@"); strings.ContainsAny(local, "#$&'*+-/=?^_`{|}~") {
			odd = append(odd, parse(t, text))
		}
	}
	return odd
}

// sendAll hands over one mail to each from several goroutines, as a service
// does, and returns when all are accepted.
func sendAll(t *testing.T, relays *mailer.Relays, to []string) {
	t.Helper()
	var group sync.WaitGroup
	for i, recipient := range to {
		group.Go(func() {
			message := letter()
			message.ID, message.To = fmt.Sprintf("<%d@acme.example>", i), recipient
			message.Bytes = append([]byte("Message-ID: "+message.ID+"\r\n"), message.Bytes...)
			if _, err := relays.Send(t.Context(), message); err != nil {
				t.Errorf("%q: %v", recipient, err)
			}
		})
	}
	group.Wait()
}

// checkEach expects exactly the mail that was for them at each recipient.
func checkEach(t *testing.T, mails []mailtest.Mail, to []string) {
	t.Helper()
	count := map[string]int{}
	for _, mail := range mails {
		count[mail.To]++
		i := slices.Index(to, mail.To)
		if i < 0 {
			t.Errorf("%q got a mail and should not have", mail.To)
		} else if !bytes.Contains(mail.Text, fmt.Appendf(nil, "Message-ID: <%d@acme.example>\n", i)) {
			t.Errorf("%q got somebody else's mail", mail.To)
		}
	}
	for _, recipient := range to {
		if count[recipient] != 1 {
			t.Errorf("%q got %d mails", recipient, count[recipient])
		}
	}
}

// Marks that steer a shell, a path or a router steer nothing here: each mail is
// delivered to the one recipient that its Address names.
func TestRealServerDeliversToOddAddresses(t *testing.T) {
	var to []string
	for _, address := range oddAddresses(t) {
		to = append(to, address.String())
	}
	if len(to) < 300 {
		t.Fatalf("only %d addresses", len(to))
	}
	server := mailtest.Start(t, mailtest.Options{})
	sendAll(t, newRelays(t, steady(), server.STARTTLS()), to)
	checkEach(t, server.Mails(t), to)
	log := server.Log()
	for _, recipient := range to {
		if !strings.Contains(log, " <"+recipient+"> R=") {
			t.Errorf("the log tells of no delivery to %q", recipient)
		}
	}
}

func TestRealServerGetsManyAtOnce(t *testing.T) {
	const many = 50
	var to []string
	for i := range many {
		to = append(to, fmt.Sprintf("user%d@example.com", i))
	}
	server := mailtest.Start(t, mailtest.Options{})
	options := steady()
	relays := newRelays(t, options, server.STARTTLS())
	sendAll(t, relays, to)
	checkEach(t, server.Mails(t), to)
	if n := connectionsMade(t, relays, server); n < many/10 || n > many/10+options.MaxConns {
		t.Errorf("%d connections were made, for ten mails each, and %d may be kept", n, options.MaxConns)
	}
}

// Exim delivers the first ten mails of a connection at once and leaves more for its
// next queue run, which may come when the code is no longer valid.
func TestRealServerDeliversAtOnce(t *testing.T) {
	var to []string
	for i := range 25 {
		to = append(to, fmt.Sprintf("user%d@example.com", i))
	}
	server := mailtest.Start(t, mailtest.Options{})
	relays := newRelays(t, steady(), server.STARTTLS())
	for i := range to {
		message := letter()
		message.To = to[i]
		mustSend(t, relays, message)
	}
	if mails := server.Mails(t); len(mails) != len(to) {
		t.Errorf("%d mails of %d were delivered", len(mails), len(to))
	}
	if strings.Contains(server.Log(), "no immediate delivery") {
		t.Errorf("not all was delivered at once; the log says:\n%s", server.Log())
	}
}
