package sandbox_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/smtp"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/mailer/sandbox"
	"github.com/mailgate/mailgate/servertest"
)

func start(t *testing.T, o sandbox.Options) *sandbox.Server {
	t.Helper()
	s, err := sandbox.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func send(t *testing.T, s *sandbox.Server, to, text string) {
	t.Helper()
	if err := smtp.SendMail(s.Addr(), nil, "a@acme.example", []string{to}, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

const multipart = "From: a@acme.example\r\nSubject: =?utf-8?q?Dein_Code_f=C3=BCr_Acme?=\r\n" +
	"Content-Type: multipart/alternative; boundary=b\r\n\r\n" +
	"--b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nf=C3=BCr dich: =\r\n123456\r\n" +
	"--b\r\nContent-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\nPHA+MTIzNDU2PC9wPg==\r\n--b--\r\n"

func TestReadersView(t *testing.T) {
	s := start(t, sandbox.Options{Now: func() int64 { return 42 }})
	send(t, s, "b@acme.example", multipart)
	m, err := s.Wait(t.Context(), "B@acme.example")
	if err != nil {
		t.Fatal(err)
	}
	if m.ID != 1 || m.From != "a@acme.example" || m.To[0] != "b@acme.example" || m.ReceivedMS != 42 ||
		m.Subject != "Dein Code für Acme" || m.Text != "für dich: 123456" || m.HTML != "<p>123456</p>" ||
		string(m.Raw) != multipart || m.Header.Get("From") != "a@acme.example" {
		t.Errorf("%+v", m)
	}
}

func TestPlainAndBrokenMails(t *testing.T) {
	const (
		text  = "--b\r\nContent-Type: text/plain\r\n\r\n"
		html  = "--b\r\nContent-Type: text/html\r\n\r\n"
		other = "--b\r\nContent-Type: image/png\r\n\r\nx\r\n"
	)
	multipart := func(parts ...string) string {
		return "Content-Type: multipart/mixed; boundary=b\r\n\r\n" + strings.Join(parts, "") + "--b--\r\n"
	}
	for mail, want := range map[string]sandbox.Message{
		"Subject: a\r\n\r\nhello\r\n":                                           {Subject: "a", Text: "hello\n"},
		"no header at all\r\n":                                                  {Text: "no header at all\r\n"},
		"Content-Type: multipart/mixed\r\n\r\nno boundary\r\n":                  {},
		"Content-Type: ;;;\r\n\r\nstrange\r\n":                                  {Text: "strange\n"},
		"Content-Transfer-Encoding: base64\r\n\r\naGVsbG8=!!!\r\n":              {Text: "hello"},
		"Content-Type: text/plain\r\nSubject: =?x?q?y?=\r\n\r\n..dots\r\n.\r\n": {Subject: "=?x?q?y?=", Text: "..dots\n.\n"},
		multipart(other, html+"1\r\n", html+"2\r\n"):                            {HTML: "1"},
		multipart(text+"1\r\n", text+"2\r\n", other):                            {Text: "1"},
		multipart(strings.Repeat(other, 30), text+"the last read\r\n"):          {Text: "the last read"},
		multipart(strings.Repeat(other, 31), text+"one more\r\n"):               {},
	} {
		s := start(t, sandbox.Options{})
		send(t, s, "b@acme.example", mail)
		if got := s.List()[0]; got.Subject != want.Subject || got.Text != want.Text || got.HTML != want.HTML {
			t.Errorf("%q reads as %q, %q, %q; want %q, %q, %q", mail, got.Subject, got.Text, got.HTML, want.Subject, want.Text, want.HTML)
		}
	}
}

func TestOnlyTheNewestAreKept(t *testing.T) {
	s := start(t, sandbox.Options{KeepMessages: 3})
	for i := range 5 {
		send(t, s, fmt.Sprintf("user%d@acme.example", i), "Subject: x\r\n\r\ny\r\n")
	}
	var kept []uint64
	for _, m := range s.List() {
		kept = append(kept, m.ID)
	}
	if fmt.Sprint(kept) != "[3 4 5]" {
		t.Errorf("kept %v", kept)
	}
	if _, ok := s.Get(2); ok {
		t.Error("2 is still there")
	}
	if m, ok := s.Get(3); !ok || m.To[0] != "user2@acme.example" {
		t.Errorf("3 is %+v, %v", m, ok)
	}
	s.Clear()
	if len(s.List()) != 0 {
		t.Error("Clear left something")
	}
}

func TestOctetsAreBounded(t *testing.T) {
	s := start(t, sandbox.Options{KeepBytes: 200})
	for range 4 {
		send(t, s, "b@acme.example", strings.Repeat("x", 98)+"\r\n")
	}
	if got := len(s.List()); got != 2 {
		t.Errorf("%d mails of 100 octets kept in 200, want 2", got)
	}
	send(t, s, "b@acme.example", strings.Repeat("x", 400)+"\r\n")
	if got := len(s.List()); got != 1 {
		t.Errorf("%d mails kept, want the newest alone", got)
	}
}

func TestWait(t *testing.T) {
	s := start(t, sandbox.Options{})
	send(t, s, "b@acme.example", "Subject: one\r\n\r\n")
	first, err := s.Wait(t.Context(), "b@acme.example")
	if err != nil {
		t.Fatal(err)
	}
	found := make(chan sandbox.Message, 1)
	go func() {
		m, err := s.WaitAfter(context.Background(), "b@acme.example", first.ID)
		if err != nil {
			t.Error(err)
		}
		found <- m
	}()
	send(t, s, "c@acme.example", "Subject: not this\r\n\r\n")
	send(t, s, "b@acme.example", "Subject: two\r\n\r\n")
	if got := (<-found).Subject; got != "two" {
		t.Errorf("waited for two, got %s", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Wait(ctx, "nobody@acme.example"); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
}

func TestLoopbackOnly(t *testing.T) {
	for _, o := range []sandbox.Options{
		{Listen: "0.0.0.0:0"}, {Listen: ":0"}, {Listen: "192.0.2.1:0"}, {Listen: "mail.example.com:0"}, {Listen: "nonsense"},
		{ImplicitTLS: true}, {User: "a", Password: "b"},
	} {
		if s, err := sandbox.Start(o); err == nil {
			s.Close()
			t.Errorf("%+v was accepted", o)
		}
	}
}

// TestConversations speaks to it line by line: "> " is said, "< " the start of
// the answer.
func TestConversations(t *testing.T) {
	for name, script := range map[string]string{
		"order": "< 220|> MAIL FROM:<a@b.c>|< 503|> EHLO|< 501|> EHLO x|< 250-|< 250-PIPELINING|< 250-8BITMIME|< 250-SIZE 1000|< 250 ENH|" +
			"> RCPT TO:<a@b.c>|< 503|> DATA|< 503|> MAIL TO:<a@b.c>|< 501|> MAIL FROM:<>|< 250|> MAIL FROM:<>|< 503|" +
			"> RCPT TO:<>|< 501|> RCPT TO: <b@b.c>|< 250|> RSET|< 250|> DATA|< 503|> NOOP|< 250|> VRFY x|< 500|> QUIT|< 221|< EOF",
		"no TLS here":        "< 220|> HELO x|< 250|> STARTTLS|< 503|> AUTH PLAIN|< 503|> QUIT|< 221|< EOF",
		"too big by its say": "< 220|> HELO x|< 250|> MAIL FROM:<a@b.c> SIZE=1001|< 552|> MAIL FROM:<a@b.c> SIZE=x|< 552|> MAIL FROM:<a@b.c> BODY=7BIT SIZE=1000|< 250",
		"too big in truth":   "< 220|> HELO x|< 250|> MAIL FROM:<a@b.c>|< 250|> RCPT TO:<a@b.c>|< 250|> DATA|< 354|> " + strings.Repeat("x", 1001) + "|> .|< 552|> NOOP|< 250",
		"bare LF":            "< 220|> HELO x|< 250|> MAIL FROM:<a@b.c>|< 250|> RCPT TO:<a@b.c>|< 250|> DATA|< 354|> a\n.\nb|> .|< 554|> NOOP|< 250",
		"bare CR":            "< 220|> HELO x|< 250|> MAIL FROM:<a@b.c>|< 250|> RCPT TO:<a@b.c>|< 250|> DATA|< 354|> a\r.\rb|> .|< 554|> NOOP|< 250",
		"a line too long":    "< 220|> " + strings.Repeat("x", 5000) + "|< 500|< EOF",
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, sandbox.Options{MaxMessageBytes: 1000})
			conn, err := net.Dial("tcp", s.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			in := bufio.NewReader(conn)
			for step := range strings.SplitSeq(script, "|") {
				if say, ok := strings.CutPrefix(step, "> "); ok {
					fmt.Fprintf(conn, "%s\r\n", say)
					continue
				}
				line, err := in.ReadString('\n')
				if want := strings.TrimPrefix(step, "< "); want == "EOF" && err == nil || want != "EOF" && !strings.HasPrefix(line, want) {
					t.Fatalf("answered %q, %v; want %s", line, err, want)
				}
			}
			if len(s.List()) != 0 {
				t.Error("a mail was kept")
			}
		})
	}
}

func TestTLSAndPassword(t *testing.T) {
	s, roots := startSecure(t)
	if want := "smtp://acme:s%2Fcret@" + s.Addr(); s.URL() != want {
		t.Errorf("URL %s, want %s", s.URL(), want)
	}
	for password, ok := range map[string]bool{"s/cret": true, "wrong": false} {
		client := dialSecure(t, s, roots)
		if err := client.Mail("a@acme.example"); err == nil {
			t.Error("a mail without a password was begun")
		}
		if err := client.Auth(smtp.PlainAuth("", "acme", password, "127.0.0.1")); (err == nil) != ok {
			t.Errorf("password %q: %v", password, err)
		}
		if err := client.Mail("a@acme.example"); (err == nil) != ok {
			t.Errorf("a mail with the password %q: %v", password, err)
		}
	}
}

// login is AUTH LOGIN, which the standard library leaves out.
type login struct{ words []string }

func (l *login) Start(*smtp.ServerInfo) (string, []byte, error) { return "LOGIN", nil, nil }

func (l *login) Next(_ []byte, more bool) ([]byte, error) {
	if !more {
		return nil, nil
	}
	word := l.words[0]
	l.words = l.words[1:]
	return []byte(word), nil
}

func TestLoginAndNonsense(t *testing.T) {
	s, roots := startSecure(t)
	for words, ok := range map[string]bool{"acme s/cret": true, "acme wrong": false, "other s/cret": false} {
		client := dialSecure(t, s, roots)
		err := client.Auth(&login{words: strings.Fields(words)})
		if (err == nil) != ok {
			t.Errorf("%s: %v", words, err)
		}
	}
	client := dialSecure(t, s, roots)
	right := base64.StdEncoding.EncodeToString([]byte("\x00acme\x00s/cret"))
	for say, want := range map[string]int{
		"AUTH CRAM-MD5": 504, "AUTH PLAIN ***": 535, "AUTH PLAIN AAAA": 535, "AUTH PLAIN " + right + "*": 535, "STARTTLS": 503,
	} {
		if err := client.Text.PrintfLine("%s", say); err != nil {
			t.Fatal(err)
		}
		if code, text, _ := client.Text.ReadResponse(want); code != want {
			t.Errorf("%s: %d %s", say, code, text)
		}
	}
	inTheClear, err := smtp.Dial(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer inTheClear.Close()
	if err := inTheClear.Text.PrintfLine("AUTH PLAIN %s", right); err != nil {
		t.Fatal(err)
	}
	if code, text, _ := inTheClear.Text.ReadResponse(503); code != 503 {
		t.Errorf("without TLS: %d %s", code, text)
	}
}

// startSecure is a sandbox that demands acme and s/cret, and whom to trust.
func startSecure(t *testing.T) (*sandbox.Server, *x509.CertPool) {
	t.Helper()
	now := time.Now()
	authority := servertest.NewAuthority(t)
	certificate := authority.Certificate(now.Add(-time.Hour).UnixMilli(), now.Add(time.Hour).UnixMilli(), "127.0.0.1")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.PEM())
	return start(t, sandbox.Options{
		TLS: &tls.Config{Certificates: []tls.Certificate{certificate}}, User: "acme", Password: "s/cret",
	}), roots
}

func dialSecure(t *testing.T, s *sandbox.Server, roots *x509.CertPool) *smtp.Client {
	t.Helper()
	client, err := smtp.Dial(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if err := client.StartTLS(&tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}); err != nil {
		t.Fatal(err)
	}
	return client
}

func TestDropAndClose(t *testing.T) {
	s := start(t, sandbox.Options{})
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	if _, err := in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	s.DropConnections()
	if line, err := in.ReadString('\n'); err == nil {
		t.Errorf("after the drop: %q", line)
	}
	nobody := func() bool { return s.Stats().Open == 0 }
	servertest.Eventually(t, "the end, which is seen before it is counted", nobody)
	send(t, s, "b@acme.example", "Subject: still there\r\n\r\n")
	servertest.Eventually(t, "the end of a mail's", nobody)
	last, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer last.Close()
	if _, err := bufio.NewReader(last).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := s.Stats(); got.Open != 0 || got.Accepted != 3 || got.MostOpen != 1 {
		t.Errorf("%+v", got)
	}
	if len(s.List()) != 1 {
		t.Error("Close forgot the mail")
	}
}
