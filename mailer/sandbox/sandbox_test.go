package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"net/smtp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/mailer/sandbox"
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

func dial(t *testing.T, s *sandbox.Server) *smtp.Client {
	t.Helper()
	client, err := smtp.Dial(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
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

func TestMessage_Received_ShownAsReadersSeeIt(t *testing.T) {
	began := time.Now().UnixMilli()
	s := start(t, sandbox.Options{})
	send(t, s, "b@acme.example", multipart)
	m, err := s.Wait(t.Context(), "B@acme.example")
	if err != nil {
		t.Fatal(err)
	}
	if m.ID != 1 || m.From != "a@acme.example" || m.To[0] != "b@acme.example" || m.ReceivedMS < began ||
		m.Subject != "Dein Code für Acme" || m.Text != "für dich: 123456" || m.HTML != "<p>123456</p>" ||
		string(m.Raw) != multipart || m.Header.Get("From") != "a@acme.example" {
		t.Errorf("%+v", m)
	}
}

func TestMessage_BrokenMails_ShownAsFarAsReadable(t *testing.T) {
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

func TestInbox_Full_KeepsTheNewest(t *testing.T) {
	for _, c := range []struct {
		options sandbox.Options
		octets  []int // of the emails that come
		kept    string
	}{
		{sandbox.Options{KeepMessages: 3}, []int{100, 100, 100, 100, 100}, "3 4 5 "},
		{sandbox.Options{KeepBytes: 200}, []int{100, 100, 100, 100}, "3 4 "},
		{sandbox.Options{KeepBytes: 200}, []int{100, 400}, "2 "},
	} {
		s := start(t, c.options)
		for _, octets := range c.octets {
			send(t, s, "b@acme.example", strings.Repeat("x", octets-2)+"\r\n")
		}
		kept := ""
		for _, m := range s.List() {
			kept += fmt.Sprint(m.ID, " ")
			if got, ok := s.Get(m.ID); !ok || got.ID != m.ID {
				t.Errorf("Get(%d): %+v, %v", m.ID, got, ok)
			}
		}
		if _, old := s.Get(1); kept != c.kept || old {
			t.Errorf("kept %s, want %s; the first is there: %v", kept, c.kept, old)
		}
	}
}

func TestWait_NextMail_IsReturned(t *testing.T) {
	s := start(t, sandbox.Options{})
	send(t, s, "b@acme.example", "Subject: one\r\n\r\n")
	first, err := s.Wait(t.Context(), "b@acme.example")
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		if m, err := s.WaitAfter(t.Context(), "b@acme.example", first.ID); err != nil || m.Subject != "two" {
			t.Errorf("waited for two, got %s, %v", m.Subject, err)
		}
	})
	send(t, s, "c@acme.example", "Subject: not this\r\n\r\n")
	send(t, s, "b@acme.example", "Subject: two\r\n\r\n")
	group.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Wait(ctx, "other@acme.example"); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
}

// A CR or LF on its own ends no email and is refused, and so is an email that is too big.
func TestData_BareLineEndOrTooBig_Refused(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"bare LF":             {"a\n.\nb", 554},
		"bare LF before CRLF": {"a\n.\r\nb", 554},
		"bare CR":             {"a\r.\rb", 554},
		"too big":             {strings.Repeat(strings.Repeat("x", 98)+"\r\n", 1<<20/100+1), 552},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, sandbox.Options{})
			client := dial(t, s)
			if err := errors.Join(client.Mail("a@b.c"), client.Rcpt("a@b.c"), client.Text.PrintfLine("DATA\r\n%s\r\n.", c.text)); err != nil {
				t.Fatal(err)
			}
			for _, want := range []int{354, c.want} {
				if _, _, err := client.Text.ReadResponse(want); err != nil {
					t.Errorf("answered %v; want %d", err, want)
				}
			}
			if err := client.Noop(); err != nil {
				t.Errorf("afterwards: %v", err)
			}
			if len(s.List()) != 0 {
				t.Error("an email was kept")
			}
		})
	}
}

func TestClose_Received_MailsStay(t *testing.T) {
	s := start(t, sandbox.Options{})
	send(t, s, "b@acme.example", "Subject: still there\r\n\r\n")
	client := dial(t, s)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := client.Noop(); err == nil {
		t.Error("a connection is open after Close")
	}
	if len(s.List()) != 1 {
		t.Error("Close lost the email")
	}
}
