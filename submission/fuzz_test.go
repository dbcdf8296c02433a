package submission_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/submission"
)

// Whatever a client that has signed in writes, each line of the answer is a reply, nothing panics, only whole texts of
// an allowed sender leave, and no connection, text or charge of what did not leave stays.
func FuzzSession(f *testing.F) {
	begin := "MAIL FROM:<no-reply@acme.example>\r\nRCPT TO:<alice@example.com>\r\n"
	for _, seed := range []string{
		begin + "DATA\r\n" + letter + ".\r\nQUIT\r\n",
		begin + "DATA\r\n" + letter + "\n.\r\nRSET\r\n.\r\n" + begin + "DATA\r\n" + letter + ".\r\n",
		begin + "BDAT 10\r\n0123456789STARTTLS\r\n\x16\x03\x01\x00\x01\x00",
		begin + "BDAT 0\r\nRSET\r\nBDAT 99999999 LAST\r\n" + letter,
		begin + "DATA\r\n.\r\n" + begin + "DATA\r\n..\r\n.\rx\r\n\r\n.\r\n",
		"EHLO a\r\nHELO b\r\nNOOP\r\nVRFY c\r\nHELP\r\nAUTH PLAIN =\r\nSTARTTLS x\r\n",
		"MAIL FROM:<@a,@b:no-reply@acme.example> SIZE=10 BODY=8BITMIME AUTH=<>\r\nRCPT TO: bob@example.com\r\nDATA\r\n" + letter + ".\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n\r\n" + strings.Repeat("x", 20_000),
	} {
		f.Add([]byte(seed))
	}
	r := start(f, setup{tiers: "hour=1000/1h", options: func(o *submission.Options) { o.MaxConnections = 1000 },
		hurry: func(t *submission.Times) { t.Arrival, t.Idle = 2*time.Second, 2*time.Second }})
	replies := regexp.MustCompile(`^([2345]\d\d[ -][ -~]*\r\n)*$`)
	begun, accepted := regexp.MustCompile(`(?m)^Received: from .* by acme\.example\r\n\twith ESMTPA id `), 0
	f.Fuzz(func(t *testing.T, says []byte) {
		r.t = t // as f must not be used here
		c := r.dial()
		defer c.Close()
		c.says("EHLO client.example", "250")
		c.says("AUTH PLAIN "+plain("app", appSecret), "235")
		says = bytes.ReplaceAll(says, []byte("<1@"), fmt.Appendf(nil, "<%d@", len(r.relay.Mails()))) // each is another email
		_, _ = c.Write(says)                                                                         // which fails once the server has ended the connection
		_ = c.Conn.(*net.TCPConn).CloseWrite()
		var said bytes.Buffer
		_, _ = io.Copy(&said, c.in) // a reset ends it too
		if text := said.Bytes(); !replies.Match(text) && !bytes.Contains(text, []byte("220 2.0.0")) {
			t.Errorf("the answer is %q", text)
		}
		servertest.Eventually(t, "the connection has ended", func() bool { return r.Connections() == 0 })
		if n := r.Texts(); n != 0 {
			t.Errorf("%d octets of texts are held", n)
		}
		if log := r.log.String(); strings.Contains(log, "level=ERROR") {
			t.Fatal(log)
		}
		mails := r.relay.Mails()
		for _, mail := range mails[accepted:] {
			if text := mail.Text; !begun.Match(text) || bytes.Contains(bytes.ReplaceAll(text, []byte("\r\n"), nil), []byte("\r")) ||
				bytes.Contains(bytes.ReplaceAll(text, []byte("\r\n"), nil), []byte("\n")) || !bytes.Contains(bytes.ToLower(text), []byte("\nfrom:")) {
				t.Errorf("the relay got %q", text)
			}
		}
		if n := bytes.Count(said.Bytes(), []byte("250 2.0.0 accepted by the relay [")); len(mails)-accepted > n {
			t.Errorf("%d emails left, and %d replies say so: %q", len(mails)-accepted, n, said.Bytes())
		}
		if n := must.Get(r.mailbox.Peek(t.Context(), alice))(t).Sent; n > len(mails)-accepted {
			t.Errorf("alice is charged %d emails, and %d were sent", n, len(mails)-accepted)
		}
		accepted = len(mails)
		must.Get(r.mailbox.Reset(t.Context(), alice))(t)
		r.log.Reset()
	})
}
