package submission_test

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/mailgate/mailgate/internal/apikey"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/submission"
)

// Each reply of docs/smtp.md, as a client reads it.
func TestReplies_EachCase_AsDocumented(t *testing.T) {
	t.Parallel()
	at := func(step fault.Step, kind fault.Kind) fault.Script {
		return fault.Script{At: step, Kind: kind, To: "alice"}
	}
	to := func(c *client) { c.to("alice@example.com") }
	for name, tt := range map[string]struct {
		script  fault.Script
		do      func(c *client)
		charged int
	}{
		"sent": {do: func(c *client) {
			to(c)
			c.data(letter, "250 2.0.0")
		}, charged: 1},
		"a limit": {do: func(c *client) {
			to(c)
			c.data(letter, "250")
			c.says("MAIL FROM:<no-reply@acme.example>", "250")
			said := c.says("RCPT TO:<Alice+x@example.com>", `550 5.7.1 limit "minute" of this mailbox reached; next email in `)
			if !strings.Contains(said, " ms (60 s) [") {
				c.t.Errorf("it says %q", said)
			}
		}, charged: 1},
		"recipient invalid": {do: func(c *client) {
			c.says("MAIL FROM:<no-reply@acme.example>", "250")
			c.says("RCPT TO:<alice@localhost>", "553 5.1.3 the domain has no dot")
			c.says(`RCPT TO:<"victim@psres.net> ORCPT=rfc822;x0"@test.com>`, "553 5.1.3")
			c.says("RCPT TO:<a%b@example.com>", "553 5.1.3")
		}},
		"needs SMTPUTF8": {do: func(c *client) {
			c.says("MAIL FROM:<no-reply@acme.example>", "250")
			c.says("RCPT TO:<älice@example.com>", "553 5.6.7")
		}},
		"null sender":        {do: func(c *client) { c.says("MAIL FROM:<>", "553 5.7.1") }},
		"sender not allowed": {do: func(c *client) { c.says("MAIL FROM:<ceo@acme.example>", "553 5.7.1") }},
		"sender by domain":   {do: func(c *client) { c.says("MAIL FROM:<Weekly@News.acme.example>", "250") }},
		"sender of a subdomain": {do: func(c *client) {
			c.says("MAIL FROM:<a@x.news.acme.example>", "553 5.7.1")
		}},
		"From not allowed": {do: func(c *client) {
			to(c)
			c.data("From: CEO <ceo@acme.example>\r\n\r\nhi\r\n", "550 5.7.1")
		}},
		"two From": {do: func(c *client) {
			to(c)
			c.data("From: no-reply@acme.example\r\nFROM: no-reply@acme.example\r\n\r\nhi\r\n", "553 5.7.1")
		}},
		"two addresses in From": {do: func(c *client) {
			to(c)
			c.data("From: no-reply@acme.example,\r\n ceo@acme.example\r\n\r\nhi\r\n", "553 5.7.1")
		}},
		"no From": {do: func(c *client) {
			to(c)
			c.data("Subject: x\r\n\r\nFrom: no-reply@acme.example\r\n", "553 5.7.1")
		}},
		"From with a blank": {do: func(c *client) {
			to(c)
			c.data("From: no-reply@acme.example\r\nFrom : ceo@acme.example\r\n\r\nhi\r\n", "554 5.6.0")
		}},
		"name in another charset": {do: func(c *client) {
			to(c)
			c.data("From: =?gb2312?B?sKK/y8PX?= <no-reply@acme.example>\r\n\r\nhi\r\n", "250")
		}, charged: 1},
		"second MAIL": {do: func(c *client) {
			to(c)
			c.says("MAIL FROM:<no-reply@acme.example>", "503 5.5.1")
		}, charged: 1},
		"relay down":                {at(fault.Banner, fault.HangUp), func(c *client) { to(c); c.data(letter, "451 4.4.1") }, 0},
		"relay defers":              {at(fault.RCPT, fault.Temporary), func(c *client) { to(c); c.data(letter, "451 4.4.1 <alice@example.com>: not now") }, 0},
		"relay defers the text":     {at(fault.Dot, fault.Temporary), func(c *client) { to(c); c.data(letter, "451 4.4.1 not now") }, 0},
		"relay refuses":             {at(fault.RCPT, fault.Permanent), func(c *client) { to(c); c.data(letter, "554 5.1.1 <alice@example.com>: never") }, 1},
		"relay refuses the text":    {at(fault.Dot, fault.Permanent), func(c *client) { to(c); c.data(letter, "554 5.1.1 never") }, 1},
		"relay bars the recipient":  {at(fault.RCPT, fault.Barred), func(c *client) { to(c); c.data(letter, "554 5.7.1 <alice@example.com>: not from you") }, 0},
		"relay bars the text":       {at(fault.Dot, fault.Barred), func(c *client) { to(c); c.data(letter, "554 5.7.1 not from you") }, 0},
		"relay bars DATA":           {at(fault.DATA, fault.Barred), func(c *client) { to(c); c.data(letter, "554 5.7.1 not from you") }, 0},
		"relay bars the sender":     {at(fault.MAIL, fault.Barred), func(c *client) { to(c); c.data(letter, "554 5.7.1 not from you") }, 0},
		"relay bars this server":    {at(fault.EHLO, fault.Barred), func(c *client) { to(c); c.data(letter, "451 4.4.1 the relay is unavailable") }, 0},
		"relay bars the connection": {at(fault.Banner, fault.Barred), func(c *client) { to(c); c.data(letter, "451 4.4.1 the relay is unavailable") }, 0},
		"relay knows no command":    {at(fault.RCPT, fault.Echo), func(c *client) { to(c); c.data(letter, "500 5.5.2 <alice@example.com>: what is") }, 1},
		"relay refuses in one word": {at(fault.RCPT, fault.Curt), func(c *client) { to(c); c.data(letter, "550 5.0.0 <alice@example.com>: go away") }, 1},
		"not confirmed":             {at(fault.Dot, fault.HangUp), func(c *client) { to(c); c.data(letter, "554 5.4.0") }, 1},
		"no 8-bit relay":            {fault.Script{NoEightBit: true}, func(c *client) { to(c); c.data(letter+"ü\r\n", "554 5.6.3") }, 0},
		"8-bit relay":               {fault.Script{}, func(c *client) { to(c); c.data(letter+"ü\r\n", "250") }, 1},
		"too large for the relay":   {fault.Script{Size: 100}, func(c *client) { to(c); c.data(letter, "552 5.3.4") }, 0},
		"announced too large": {do: func(c *client) {
			c.says("MAIL FROM:<no-reply@acme.example> SIZE=1048577", "552 5.3.4")
		}},
		"as large as may be": {do: func(c *client) { to(c); c.data(ofSize(1<<20), "250") }, charged: 1},
		"too large":          {do: func(c *client) { to(c); c.data(ofSize(1<<20+1), "552 5.3.4"); c.says("NOOP", "250") }},
		"NUL":                {do: func(c *client) { to(c); c.data(letter+"\x00\r\n", "554 5.6.0") }},
		"bare LF":            {do: func(c *client) { to(c); c.data(letter+"a\n.\nb\r\n", "554 5.6.0") }},
		"bare LF, dot, CRLF": {do: func(c *client) { to(c); c.data(letter+"a\n.\r\nb\r\n", "554 5.6.0") }},
		"bare CR":            {do: func(c *client) { to(c); c.data(letter+"a\r.\rb\r\n", "554 5.6.0") }},
		"longest line":       {do: func(c *client) { to(c); c.data(letter+strings.Repeat("x", 998)+"\r\n", "250") }, charged: 1},
		"long line": {do: func(c *client) {
			to(c)
			c.data(letter+strings.Repeat("x", 999)+"\r\n", "554 5.6.0")
			c.says("NOOP", "250")
		}},
		"very long line": {do: func(c *client) {
			to(c)
			c.data(letter+strings.Repeat("x", 20_000)+"\r\n", "554 5.6.0")
			c.says("NOOP", "250")
		}},
		"endless command": {do: func(c *client) { c.says(strings.Repeat("x", 20_000), "500"); c.ends() }},
		"header begins with a blank": {do: func(c *client) {
			to(c)
			c.data(" From: ceo@acme.example\r\n"+letter, "554 5.6.0")
		}},
		"header with a line of blanks": {do: func(c *client) {
			to(c)
			c.data("From: no-reply@acme.example\r\n \t\r\nSubject: hi\r\n\r\nhi\r\n", "554 5.6.0")
		}},
		"half-closed in the text": {do: func(c *client) {
			to(c)
			c.says("DATA", "354")
			c.write(letter)
			must.OK(c.t, c.Conn.(*net.TCPConn).CloseWrite())
			c.reads("421 4.4.2")
			c.ends()
		}},
		"broken header": {do: func(c *client) { to(c); c.data("From: no-reply@acme.example\r\nno colon\r\n\r\nhi\r\n", "554 5.6.0") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, setup{script: tt.script})
			tt.do(r.signedIn())
			r.eventuallyCharged("alice@example.com", tt.charged)
		})
	}
}

// ofSize is a text of so many octets.
func ofSize(n int) string {
	line := strings.Repeat("x", 98) + "\r\n"
	n -= len(letter) - len(".") // the dot is stuffed
	return letter + strings.Repeat(line, n/100-1) + strings.Repeat("x", 100+n%100-2) + "\r\n"
}

// A key's name and its secret open the door, and after three that do not the connection ends.
func TestAUTH_EachPassword_TakenOrRefused(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	c := r.dial()
	c.says("AUTH PLAIN "+plain("app", appSecret), "503")
	c.says("EHLO client.example", "250")
	c.says("MAIL FROM:<no-reply@acme.example>", "530 5.7.0")
	c.says("RCPT TO:<alice@example.com>", "503")
	c.says("AUTH PLAIN "+base("other\x00app\x00"+appSecret), "535 5.7.8")
	c.says("AUTH PLAIN "+plain(lateKey, appSecret), "535 5.7.8")
	c.says("AUTH PLAIN", "334")
	c.says(plain("app", appSecret), "235")
	c.says("AUTH PLAIN "+plain("app", appSecret), "503")
	c = r.dial()
	c.says("EHLO client.example", "250")
	for range 3 {
		c.says("AUTH PLAIN "+plain("app", "wrong"), "535 5.7.8")
	}
	c.reads("421")
	c.ends()
	if log := r.log.String(); strings.Count(log, "outcome=wrong-key") != 5 || strings.Contains(log, "wrong\n") {
		t.Errorf("the log says\n%s", log)
	}
}

// An email of a key in Defer may come late.
func TestReplies_DeferredKey_450(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	c := r.dial()
	c.says("EHLO client.example", "250")
	c.says("AUTH PLAIN "+plain(lateKey, appSecret+"-late"), "235")
	c.to("alice@example.com")
	c.data(letter, "250")
	c.says("MAIL FROM:<no-reply@acme.example>", "250")
	c.says("RCPT TO:<alice@example.com>", `450 4.7.1 limit "minute" of this mailbox reached`)
}

func TestReplies_RecordsUnavailable_451(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	r.faults.Fail("take", "peek")
	c := r.signedIn()
	c.says("MAIL FROM:<no-reply@acme.example>", "250")
	c.says("RCPT TO:<alice@example.com>", "451 4.3.0")
	r.faults.Fail()
	c.says("RCPT TO:<alice@example.com>", "250")
	c.data(letter, "250")
}

func TestReplies_ManyRecipients_452(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	c := r.signedIn()
	c.says("MAIL FROM:<no-reply@acme.example>", "250")
	for i := range 1000 {
		want := "250"
		if i >= 100 {
			want = "452 4.5.3"
		}
		c.says(fmt.Sprintf("RCPT TO:<r%d@example.com>", i), want)
	}
	c.data(letter, "250")
	r.sent(1)
	r.charged("r99@example.com", 1)
	r.charged("r100@example.com", 0)
}

// Only what is true is announced, and what needs TLS waits for it.
func TestTLS_PublicListener_NothingBeforeSTARTTLS(t *testing.T) {
	t.Parallel()
	r := start(t, setup{public: true})
	c := r.dial()
	said := c.says("EHLO client.example", "250")
	if strings.Contains(said, "AUTH") || !strings.Contains(said, "STARTTLS") || strings.Contains(said, "SMTPUTF8") {
		t.Errorf("it offers %q", said)
	}
	c.says("AUTH PLAIN "+plain("app", appSecret), "523 5.7.10")
	c.says("MAIL FROM:<no-reply@acme.example>", "530 5.7.0")
	c.secure()
	said = c.says("EHLO client.example", "250")
	for _, offer := range []string{"AUTH PLAIN LOGIN", "SIZE 1048576", "PIPELINING", "8BITMIME", "ENHANCEDSTATUSCODES"} {
		if !strings.Contains(said, offer) {
			t.Errorf("%s is not offered: %q", offer, said)
		}
	}
	c.says("STARTTLS", "503 5.5.1")
	c.says("MAIL FROM:<no-reply@acme.example>", "530 5.7.0")
	c.says("AUTH LOGIN", "334 VXNlcm5hbWU6")
	c.says(base("app"), "334 UGFzc3dvcmQ6")
	c.says(base(appSecret), "235")
	c.to("alice@example.com")
	c.data(letter, "250")
	c.says("RCPT TO:<alice@example.com>", "503 5.5.1")
}

func TestTLS_FromTheFirstByte(t *testing.T) {
	t.Parallel()
	r := start(t, setup{public: true, implicit: true})
	c := r.connect()
	c.Conn, c.in = r.encrypt(c.Conn)
	c.reads("220")
	c.says("EHLO client.example", "250")
	c.says("AUTH LOGIN "+base("app"), "334 UGFzc3dvcmQ6")
	c.says(base(appSecret), "235")
	c.to("alice@example.com")
	c.data(letter, "250")
	if text := r.relay.Mails()[0].Text; !bytes.Contains(text, []byte("\twith ESMTPSA id ")) {
		t.Errorf("%s", text)
	}
}

// What came in the clear behind STARTTLS is no command under TLS.
func TestTLS_CommandsBehindSTARTTLS_AreNotRun(t *testing.T) {
	t.Parallel()
	r := start(t, setup{public: true})
	c := r.dial()
	c.says("EHLO client.example", "250")
	c.write("STARTTLS\r\nNOOP\r\nEHLO injected.example\r\n")
	c.reads("220 2.0.0")
	c.Conn, c.in = r.encrypt(c.Conn)
	c.says("MAIL FROM:<no-reply@acme.example>", "503")
	if said := c.says("EHLO client.example", "250"); strings.Contains(said, "injected") {
		t.Errorf("it answers %q", said)
	}
}

// Without keys, clients of this machine need none.
func TestNoKeys_NoSignIn(t *testing.T) {
	t.Parallel()
	r := start(t, setup{options: func(o *submission.Options) { o.Keys = apikey.Keys{} }})
	c := r.dial()
	if said := c.says("EHLO client.example", "250"); strings.Contains(said, "AUTH") {
		t.Errorf("it offers %q", said)
	}
	c.says("AUTH PLAIN "+plain("app", appSecret), "502 5.5.1")
	c.to("alice@example.com")
	c.data(letter, "250")
}

// A fault of the program is in the log with its stack, and says nothing of what it was about.
func TestPanic_421AndLogged(t *testing.T) {
	t.Parallel()
	r := start(t, setup{options: func(o *submission.Options) {
		var once sync.Once
		o.Now = func() int64 {
			once.Do(func() { panic("alice@example.com") })
			return 0
		}
	}})
	c := r.signedIn()
	c.says("MAIL FROM:<no-reply@acme.example>", "250")
	c.says("RCPT TO:<alice@example.com>", "250")
	c.says("RSET", "421 4.3.0 internal error")
	c.ends()
	servertest.Eventually(t, "the panic is logged", func() bool {
		return strings.Contains(r.log.String(), `level=ERROR msg=submission door=smtp cause="panic of a string" stack=`)
	})
	if log := r.log.String(); strings.Contains(log, "alice") {
		t.Errorf("the log says %s", log)
	}
}
