package submission_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/submission"
)

// Before a client has signed in it gets the greetings of the protocol, and nothing else.
func TestCommands_BeforeAUTH_OnlyThoseThatSayNothing(t *testing.T) {
	t.Parallel()
	r := start(t, setup{public: true})
	c := r.dial()
	for _, state := range []struct{ hello, auth, mail string }{
		{"", "503", "503"},
		{"EHLO client.example", "523 5.7.10", "530 5.7.0"},
		{"STARTTLS", "503", "503"},
		{"EHLO client.example", "334", "530 5.7.0"},
	} {
		switch state.hello {
		case "":
		case "STARTTLS":
			c.secure()
		default:
			c.says(state.hello, "250")
		}
		for _, command := range []struct{ line, want string }{
			{"MAIL FROM:<no-reply@acme.example>", state.mail},
			{"RCPT TO:<" + alice + ">", "503"}, {"DATA", "503"}, {"BDAT 6 LAST\r\nQUIT", "502"},
			{"NOOP", "250"}, {"RSET", "250"}, {"HELP", "502"}, {"EXPN all", "502"}, {"VRFY " + alice, "252 2.5.0"},
		} {
			c.says(command.line, command.want)
		}
		c.says("AUTH PLAIN", state.auth)
		if state.auth == "334" {
			c.says("*", "501")
		}
	}
	c.says("QUIT", "221")
	c.ends()
	r.charged(alice, 0)
}

// A client of TLS that was served in the clear before is asked for its key again.
func TestTLS_SignedInBeforeSTARTTLS_SignsInAgain(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	c := r.signedIn()
	c.to(alice)
	c.secure()
	c.says("EHLO client.example", "250")
	c.says("MAIL FROM:<no-reply@acme.example>", "530 5.7.0")
	r.eventuallyCharged(alice, 0)
	c.says("AUTH PLAIN "+plain("app", appSecret), "235")
	c.to(alice)
	c.data(letter, "250")
}

// What a relay could take for the end of a text is none here either: nothing behind it is a command, and
// nothing leaves.
func TestSmuggling_In_OneTextRefused(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"\n.\n", "\n.\r\n", "\r\n.\n", "\r.\r", "\r\n.\r", "\r.\r\n", "\r\n\x00.\r\n"} {
		t.Run(fmt.Sprintf("%q", end), func(t *testing.T) {
			t.Parallel()
			r := start(t, setup{})
			c := r.signedIn()
			c.to(alice)
			c.data(letter+end+"MAIL FROM:<no-reply@acme.example>\r\nRCPT TO:<"+bob+">\r\nDATA\r\n"+letter, "554 5.6.0")
			c.says("NOOP", "250 2.0.0 OK")
			r.sent(0)
			r.charged(alice, 0)
			r.charged(bob, 0)
		})
	}
}

// No text and no name of a client adds a line to what the relay reads.
func TestSmuggling_Out_RelayReadsOneEmail(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	c := r.dial()
	c.says("EHLO a.example\rX-Injected:\ty", "250")
	c.says("AUTH PLAIN "+plain("app", appSecret), "235")
	c.says("MAIL FROM:<no-reply@acme.example>", "250")
	for _, to := range []string{"<a@b.example> NOTIFY=NEVER", "<a@b.example>\rRCPT TO:<" + bob + ">", "<a@b.example\x00>", "<\"a>"} {
		c.says("RCPT TO:"+to, "5")
	}
	c.says("RCPT TO:<"+alice+">", "250")
	text := letter + "..\r\nRSET\r\nMAIL FROM:<no-reply@acme.example>\r\nRCPT TO:<" + bob + ">\r\nDATA\r\n" + letter
	c.data(text, "250")
	mails := r.relay.Mails()
	if len(mails) != 1 || mails[0].To != alice || !bytes.HasPrefix(mails[0].Text, []byte("Received: from unknown by ")) || bytes.Contains(mails[0].Text, []byte("Injected")) {
		t.Errorf("the relay got %+v", mails)
	}
	for _, line := range strings.Split(fmt.Sprintf("%s", r.relay.Received()), "\r\n") {
		if strings.Contains(line, "RCPT TO:<b@") {
			t.Errorf("the relay read %q", line)
		}
	}
}

// Octets above 127 in a header are those of a text: they go on unchanged, or not at all.
func TestText_EightBitHeader_AsItCameOrRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		header, reply string
		script        fault.Script
	}{
		"subject":          {"From: no-reply@acme.example\r\nSubject: Grüße\r\n", "250", fault.Script{}},
		"subject in 7 bit": {"From: no-reply@acme.example\r\nSubject: Grüße\r\n", "554 5.6.3", fault.Script{NoEightBit: true}},
		"name":             {"From: Grüße <no-reply@acme.example>\r\n", "250", fault.Script{}},
		"name, no UTF-8":   {"From: Gr\xfc\xdfe <no-reply@acme.example>\r\n", "553 5.7.1", fault.Script{}},
		"address":          {"From: nö-reply@acme.example\r\n", "550 5.7.1", fault.Script{}},
		"name of a field":  {"From: no-reply@acme.example\r\nSübject: x\r\n", "554 5.6.0", fault.Script{}},
		"homoglyph":        {"From: no-reply@аcme.example\r\n", "550 5.7.1", fault.Script{}},
		"full width":       {"From: no-reply@ａcme.example\r\n", "550 5.7.1", fault.Script{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, setup{script: tt.script})
			c := r.signedIn()
			c.to(alice)
			c.data(tt.header+"\r\nhi\r\n", tt.reply)
			if strings.HasPrefix(tt.reply, "250") {
				if text := r.relay.Mails()[0].Text; !bytes.Contains(text, []byte(tt.header)) {
					t.Errorf("the relay got %q", text)
				}
				return
			}
			r.sent(0)
			r.charged(alice, 0)
		})
	}
}

// A client that is slow at any step, an octet at a time or silent, is told so and closed when the time of the
// step is over.
func TestClient_SlowAtEachStep_Closed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		implicit bool
		before   func(c *client)
		drips    string
	}{
		"greeting":     {before: func(*client) {}, drips: "EHLO client.example and so on"},
		"EHLO":         {before: func(c *client) { c.says("EHLO client.example", "250") }, drips: "NOOP NOOP"},
		"user":         {before: func(c *client) { c.says("EHLO client.example", "250"); c.says("AUTH LOGIN", "334") }, drips: "YXBwYXBwYXBw"},
		"password":     {before: func(c *client) { c.says("EHLO client.example", "250"); c.says("AUTH LOGIN YXBw", "334") }, drips: "YXBwYXBwYXBw"},
		"STARTTLS":     {before: func(c *client) { c.says("EHLO client.example", "250"); c.says("STARTTLS", "220") }, drips: "\x16\x03\x01\x01\x00\x01\x00\x00\xfc"},
		"implicit TLS": {implicit: true, drips: "\x16\x03\x01\x01\x00\x01\x00\x00\xfc"},
	} {
		for _, drips := range []string{"", tt.drips} {
			t.Run(name+map[bool]string{true: " drips"}[drips != ""], func(t *testing.T) {
				t.Parallel()
				r := start(t, setup{implicit: tt.implicit, hurry: func(t *submission.Times) { t.SignIn = 250 * time.Millisecond }})
				c := r.connect()
				if tt.before != nil {
					c.reads("220")
					tt.before(c)
				}
				began := time.Now()
				for i := range len(drips) {
					if _, err := c.Write([]byte(drips[i : i+1])); err != nil {
						break
					}
					time.Sleep(20 * time.Millisecond)
				}
				if said, _ := io.ReadAll(c.in); !strings.HasPrefix(tt.drips, "\x16") && !strings.HasPrefix(string(said), "421 4.4.2") {
					t.Errorf("it was told %q", said)
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("it was closed after %v", took)
				}
				servertest.Eventually(t, "the connection has ended", func() bool { return r.Connections() == 0 })
			})
		}
	}
}

// A name in EHLO that is a name stands in the Received line, and a long one does not.
func TestReceived_Names_OnlyNames(t *testing.T) {
	t.Parallel()
	for given, shown := range map[string]string{"host-1.example": "host-1.example", "[127.0.0.1]": "unknown", "127.0.0.1": "unknown", strings.Repeat("a", 300): "unknown", "ä.example": "unknown"} {
		r := start(t, setup{})
		c := r.dial()
		c.says("EHLO "+given, "250")
		c.says("AUTH PLAIN "+plain("app", appSecret), "235")
		c.to(alice)
		c.data(letter, "250")
		if text := string(r.relay.Mails()[0].Text); !strings.HasPrefix(text, "Received: from "+shown+" by acme.example\r\n\twith ESMTPA id ") {
			t.Errorf("EHLO %s: %s", given, must.Get(io.ReadAll(io.LimitReader(strings.NewReader(text), 200)))(t))
		}
	}
}

// A long header is read in no more time than its length takes.
func TestText_EndlessFrom_RefusedAtOnce(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	c := r.signedIn()
	c.to(alice)
	began := time.Now()
	c.data("From: no-reply@acme.example"+strings.Repeat("\r\n x", 250_000)+"\r\n\r\nhi\r\n", "553 5.7.1")
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}
