package mailtest

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/smtp"
	"net/textproto"
	"net/url"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/servertest"
)

// recorder is a testing.TB that keeps what a failing test would have said.
type recorder struct {
	testing.TB
	said     string
	cleanups []func()
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Fatal(args ...any) {
	r.said = fmt.Sprint(args...)
	runtime.Goexit()
}
func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

// failing runs what must fail its test, and gives what it said.
func failing(t *testing.T, body func(testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		body(r)
	}()
	<-done
	for _, cleanup := range r.cleanups {
		cleanup()
	}
	if r.said == "" {
		t.Fatal("that should have failed the test")
	}
	return r.said
}

// dial reaches the server by its URL, with the standard library alone, and logs
// in.
func dial(t *testing.T, address string) *smtp.Client {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	config := &tls.Config{ServerName: u.Hostname(), RootCAs: roots(t, u.Query().Get("ca"))}
	if u.Scheme == "smtps" {
		conn = tls.Client(conn, config)
	}
	client, err := smtp.NewClient(conn, u.Hostname())
	if err != nil {
		t.Fatal(err)
	}
	if u.Scheme == "smtp" {
		if offered, with := client.Extension("AUTH"); offered && with != "" {
			t.Errorf("AUTH %s is offered in the clear", with)
		}
		if err := client.StartTLS(config); err != nil {
			t.Fatal(err)
		}
	}
	password, _ := u.User.Password()
	if err := client.Auth(smtp.PlainAuth("", u.User.Username(), password, u.Hostname())); err != nil {
		t.Fatal(err)
	}
	return client
}

func roots(t *testing.T, file string) *x509.CertPool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		t.Fatal("the CA file holds no certificate")
	}
	return pool
}

// send hands one mail over, up to the first refusal.
func send(client *smtp.Client, from, to, text string) error {
	if err := client.Mail(from); err != nil {
		return err
	}
	if err := client.Rcpt(to); err != nil {
		return err
	}
	w, err := client.Data()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(w, text); err != nil {
		return err
	}
	return w.Close()
}

func TestMailIsDelivered(t *testing.T) {
	server := Start(t, Options{})
	for name, address := range map[string]string{"STARTTLS": server.STARTTLS(), "SMTPS": server.SMTPS()} {
		t.Run(name, func(t *testing.T) {
			to := name + "@anywhere.example"
			if err := send(dial(t, address), "a@b.example", to, "Subject: x\r\n\r\n.dot\r\n"); err != nil {
				t.Fatal(err)
			}
			text := string(server.Await(t, to))
			if !strings.HasPrefix(text, "Received: from ") || !strings.HasSuffix(text, "\nSubject: x\n\n.dot\n") {
				t.Errorf("delivered was\n%s", text)
			}
			// The line is written a moment after the mail is in its box.
			servertest.Await(t, "the recipient's line in the log", 10*time.Second, func() error {
				if !strings.Contains(server.Log(), "<"+to+">") {
					return errors.New(server.Log())
				}
				return nil
			})
		})
	}
	mails := server.Mails(t)
	if len(mails) != 2 || mails[0].From != "a@b.example" || mails[0].To == mails[1].To {
		t.Errorf("delivered were %v", mails)
	}
}

func TestRefusals(t *testing.T) {
	server := Start(t, Options{Refuse: []Refusal{
		{At: "MAIL", Domain: "spoofed.example", Reply: "550 5.7.1 Not yours"},
		{At: "RCPT", Domain: "empty.example", Reply: "550 5.1.1 No such mailbox"},
		{At: "RCPT", Domain: "grey.example", Reply: "451 4.7.1 Come again"},
		{At: "DATA", Domain: "picky.example", Reply: "554 5.6.0 Not this text"},
		{At: "DATA", Domain: "full.example", Reply: "452 4.2.2 Mailbox full"},
	}})
	for _, test := range []struct{ from, to, want string }{
		{"a@spoofed.example", "b@fine.example", "550 5.7.1 Not yours"},
		{"a@fine.example", "b@empty.example", "550 5.1.1 No such mailbox"},
		{"a@fine.example", "b@grey.example", "451 4.7.1 Come again"},
		{"a@fine.example", "b@picky.example", "554 5.6.0 Not this text"},
		{"a@fine.example", "b@full.example", "452 4.2.2 Mailbox full"},
		{"a@picky.example", "b@fine.example", "<nil>"},
	} {
		if got := verdict(send(dial(t, server.STARTTLS()), test.from, test.to, "Subject: x\r\n\r\nx\r\n")); got != test.want {
			t.Errorf("from %s to %s: %s, want %s", test.from, test.to, got, test.want)
		}
	}
	if mails := server.Mails(t); len(mails) != 1 || mails[0].To != "b@fine.example" {
		t.Errorf("delivered were %v", mails)
	}
}

func TestPasswords(t *testing.T) {
	server := Start(t, Options{User: `u"s}e$r{`, Password: `${p\a}s's`, LoginOnly: true})
	client := startTLS(t, server)
	if got := verdict(send(client, "a@b.example", "c@d.example", "x")); got != "530 5.7.0 Authentication required" {
		t.Errorf("without a password: %s", got)
	}
	if _, with := client.Extension("AUTH"); with != "LOGIN" {
		t.Errorf("offered is AUTH %s", with)
	}
	if err := client.Reset(); err != nil {
		t.Fatal(err)
	}
	if err := client.Auth(&login{server.User, server.Password}); err != nil {
		t.Errorf("the right password: %v", err)
	}
	if got := verdict(startTLS(t, server).Auth(&login{server.User, "wrong"})); !strings.HasPrefix(got, "535 ") {
		t.Errorf("a wrong password: %s", got)
	}
}

func startTLS(t *testing.T, server *Server) *smtp.Client {
	t.Helper()
	client, err := smtp.Dial(server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if err := client.StartTLS(&tls.Config{ServerName: "localhost", RootCAs: roots(t, server.CA)}); err != nil {
		t.Fatal(err)
	}
	return client
}

// verdict is the reply an error stands for, or what else it says.
func verdict(err error) string {
	if reply, ok := errors.AsType[*textproto.Error](err); ok {
		return fmt.Sprintf("%d %s", reply.Code, reply.Msg)
	}
	return fmt.Sprint(err)
}

// login is AUTH LOGIN, which the standard library leaves to others.
type login struct{ user, password string }

func (l *login) Start(*smtp.ServerInfo) (string, []byte, error) { return "LOGIN", nil, nil }

func (l *login) Next(prompt []byte, more bool) ([]byte, error) {
	switch {
	case !more:
		return nil, nil
	case strings.HasPrefix(string(prompt), "User"):
		return []byte(l.user), nil
	}
	return []byte(l.password), nil
}

// Nothing in a mail passes for the envelope that the server wrote.
func TestEnvelopeOfADisguisedMail(t *testing.T) {
	server := Start(t, Options{})
	const text = "Return-path: <x@y.example>\r\nEnvelope-to: victim@y.example\r\nSubject: x\r\n\r\nx\r\n"
	if err := send(dial(t, server.SMTPS()), "a@b.example", "C@d.example", text); err != nil {
		t.Fatal(err)
	}
	mails := server.Mails(t)
	if len(mails) != 1 || mails[0].From != "a@b.example" || mails[0].To != "C@d.example" {
		t.Errorf("delivered were %q", mails)
	}
	if _, err := readMail([]byte("Subject: x\n\n")); err == nil {
		t.Error("a mail without an envelope is read")
	}
}

func TestFailuresSayWhatIsWrong(t *testing.T) {
	said := failing(t, func(tb testing.TB) { start(tb, Options{}, []string{t.TempDir(), "."}) })
	if !strings.Contains(said, "exim4 is neither in PATH") || !strings.Contains(said, "apt-get install") || strings.Contains(said, "\n") {
		t.Errorf("without exim4 it says %q", said)
	}
	said = failing(t, func(tb testing.TB) {
		Start(tb, Options{Refuse: []Refusal{{At: "RCPT", Domain: "x.example\n  no such condition = y", Reply: "550 5.1.1 No"}}})
	})
	if !strings.Contains(said, "ended at its start") || !strings.Contains(said, `"no such condition`) {
		t.Errorf("with broken settings it says %q", said)
	}
}
