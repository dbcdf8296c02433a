package submission_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/submission"
	"github.com/mailgate/mailgate/throttle"
)

const other = "From: no-reply@acme.example\r\nMessage-ID: <2@acme.example>\r\n\r\nanother\r\n"

// loses sends an email to alice whose reply is lost, and waits for its end.
func (r *rig) loses(text string) {
	r.t.Helper()
	c := r.signedIn()
	c.to(alice)
	c.says("DATA", "354")
	c.write(text + ".\r\n")
	servertest.Eventually(r.t, "the email has ended", func() bool {
		return strings.Contains(r.log.String(), "outcome=sent") || strings.Contains(r.log.String(), "outcome=unknown")
	})
	c.Close()
	servertest.Eventually(r.t, "the connection has ended", func() bool { return r.Connections() == 0 })
}

// A client that lost the reply sends the email again, and gets the first reply: no second email leaves, and
// nothing is charged.
func TestLostReply_SameEmail_FirstReply(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tiers, reply string
		script       fault.Script
	}{
		"its limit is reached":     {"minute=1/60s", "250 2.0.0 accepted", fault.Script{}},
		"its limit is not reached": {"hour=5/1h", "250 2.0.0 accepted", fault.Script{}},
		"it was not confirmed":     {"minute=1/60s", "554 5.4.0", fault.Script{At: fault.Dot, Kind: fault.HangUp}},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, setup{tiers: tt.tiers, script: tt.script})
			r.loses(letter)
			for range 2 {
				c := r.signedIn()
				c.to(alice)
				c.data(letter, tt.reply)
				c.Close()
			}
			if n := len(r.relay.Mails()); n != 1 {
				t.Errorf("the relay got %d emails", n)
			}
			r.charged(alice, 1)
		})
	}
}

// When the repeated reply has arrived, the same text is a new email, limited as such.
func TestLostReply_RepeatAcknowledged_NextEmailIsNew(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tiers string
		next  func(c *client)
		sent  int
	}{
		"its limit is reached":     {"minute=1/60s", func(c *client) { c.says("RCPT TO:<"+alice+">", "550 5.7.1") }, 1},
		"its limit is not reached": {"hour=5/1h", func(c *client) { c.says("RCPT TO:<"+alice+">", "250"); c.data(letter, "250") }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, setup{tiers: tt.tiers})
			r.loses(letter)
			c := r.signedIn()
			c.data2(t, letter, "250")
			r.sent(1)
			c.says("MAIL FROM:<no-reply@acme.example>", "250")
			tt.next(c)
			r.sent(tt.sent)
			r.charged(alice, tt.sent)
		})
	}
}

// An email that did not leave does not replace the one before it, whose reply may be lost.
func TestLostReply_AnotherDeferred_FirstReply(t *testing.T) {
	t.Parallel()
	r := start(t, setup{tiers: "hour=5/1h"})
	r.loses(letter)
	r.relay.Play(fault.Script{At: fault.Dot, Kind: fault.Temporary})
	c := r.signedIn()
	c.data2(t, other, "451 4.4.1")
	r.relay.Play(fault.Script{})
	c.data2(t, letter, "250")
	r.sent(1)
	r.charged(alice, 1)
}

// Without the same Message-ID and text it is another email, which is limited as such.
func TestLostReply_OtherEmail_Refused(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	r.loses(letter)
	c := r.signedIn()
	c.to(alice)
	c.data(other, "550 5.7.1")
	c.data2(t, strings.Replace(letter, "<1@", "<3@", 1), "550 5.7.1")
	r.sent(1)
	r.charged(alice, 1)
}

// A text that the client gave up, and whose end comes after its repeat was sent and acknowledged, does not leave.
func TestLostReply_EndComesAfterTheRepeat_FirstReply(t *testing.T) {
	t.Parallel()
	r := start(t, setup{tiers: "hour=3/1h"})
	late := r.signedIn()
	late.to(alice)
	late.says("DATA", "354")
	late.write(letter)
	c := r.signedIn()
	c.data2(t, letter, "250")
	c.says("NOOP", "250")
	late.says(".", "250 2.0.0 accepted")
	r.sent(1)
	r.charged(alice, 1)
	c.data2(t, letter, "250") // which began after that
	r.sent(2)
	r.charged(alice, 2)
}

// data2 sends one more email to alice.
func (c *client) data2(t *testing.T, text, want string) {
	t.Helper()
	c.to(alice)
	c.data(text, want)
}

// Beside other recipients the email is sent alone later, and those after it wait as well.
func TestLostReply_BesideOthers_Deferred(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	r.loses(letter)
	c := r.signedIn()
	c.to(bob)
	c.says("RCPT TO:<"+alice+">", "451 4.5.3")
	c.says("RCPT TO:<carol@example.com>", "451 4.5.3")
	c.data(letter, "250")
	if to := r.relay.Mails()[1].To; to != bob {
		t.Errorf("it went to %s", to)
	}
	c = r.signedIn()
	c.to(alice)
	c.says("RCPT TO:<"+bob+">", "451 4.5.3")
	c.data(letter, "250")
	r.sent(2)
}

// A reply that was read is followed by a new email, whatever its text. A command that was sent before the
// reply proves nothing.
func TestReply_Acknowledged_NextEmailIsNew(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sends string // behind the text
		end   func(c *client)
		next  string
	}{
		"QUIT":              {"", func(c *client) { c.reads("250"); c.says("QUIT", "221") }, "550 5.7.1"},
		"NOOP":              {"", func(c *client) { c.reads("250"); c.says("NOOP", "250"); c.Close() }, "550 5.7.1"},
		"closed":            {"", func(c *client) { c.reads("250"); c.Close() }, "250"},
		"closed under TLS":  {"", func(c *client) { c.reads("250"); c.Close() }, "250"}, // by a record, which is no command
		"QUIT in one piece": {"QUIT\r\n", func(c *client) { c.reads("250"); c.reads("221"); c.ends() }, "250"},
		"QUIT before":       {"", func(c *client) { c.write("QUIT\r\n"); c.reads("250"); c.reads("221"); c.ends() }, "250"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, setup{script: fault.Script{At: fault.Dot, Kind: fault.Drip, DripEvery: 10 * time.Millisecond}})
			c := r.signedIn()
			if strings.HasSuffix(name, "TLS") {
				c.secure()
				c.says("EHLO client.example", "250")
				c.says("AUTH PLAIN "+plain("app", appSecret), "235")
			}
			c.to(alice)
			c.says("DATA", "354")
			c.write(letter + ".\r\n" + tt.sends)
			tt.end(c)
			servertest.Eventually(t, "the connection has ended", func() bool { return r.Connections() == 0 })
			c = r.signedIn()
			c.says("MAIL FROM:<no-reply@acme.example>", "250")
			c.says("RCPT TO:<"+alice+">", tt.next)
		})
	}
}

// While an email is open on a connection, others to its mailbox are deferred, not refused: it may not leave.
func TestOpen_OtherConnection_451(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	first, second := r.signedIn(), r.signedIn()
	first.to(alice)
	second.says("MAIL FROM:<no-reply@acme.example>", "250")
	second.says("RCPT TO:<"+alice+">", "451 4.3.2")
	first.says("RSET", "250")
	second.says("RCPT TO:<"+alice+">", "250")
	second.data(letter, "250")
	r.charged(alice, 1)
}

// Another node that shares the records gives the first reply, too.
func TestLostReply_OtherNode_FirstReply(t *testing.T) {
	t.Parallel()
	var shared submission.Options
	r := start(t, setup{options: func(o *submission.Options) { shared = *o }})
	r.loses(letter)
	node := start(t, setup{options: func(o *submission.Options) { o.Records, o.Rules = shared.Records, shared.Rules }})
	c := node.signedIn()
	c.to(alice)
	c.data(letter, "250")
	node.sent(0)
	r.sent(1)
	r.charged(alice, 1)
}

// A repeat is the same email for a day if it has a Message-ID, and else for a quarter of an hour.
func TestLostReply_Old_NextEmailIsNew(t *testing.T) {
	t.Parallel()
	noID := strings.Replace(letter, "Message-ID: <1@acme.example>\r\n", "", 1)
	for name, tt := range map[string]struct {
		text  string
		after time.Duration
		sent  int
	}{
		"without an id":            {noID, 14 * time.Minute, 1},
		"without an id, later":     {noID, 16 * time.Minute, 2},
		"with an id":               {letter, 23 * time.Hour, 1},
		"with an id, the next day": {letter, 25 * time.Hour, 2},
		"with an empty id, later":  {strings.Replace(letter, "<1@acme.example>", " ", 1), 16 * time.Minute, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, setup{tiers: "minute=1/60s,week=5/168h"})
			r.loses(tt.text)
			r.ahead.Add(tt.after.Milliseconds())
			r.signedIn().data2(t, tt.text, "250")
			r.sent(tt.sent)
			r.charged(alice, tt.sent)
		})
	}
}

// Each key has emails of its own: the same text of another one is another email.
func TestLostReply_OtherKey_IsNew(t *testing.T) {
	t.Parallel()
	r := start(t, setup{tiers: "hour=5/1h"})
	r.loses(letter)
	c := r.dial()
	c.says("EHLO client.example", "250")
	c.says("AUTH PLAIN "+plain(lateKey, appSecret+"-late"), "235")
	c.data2(t, letter, "250")
	r.sent(2)
	r.charged(alice, 2)
}

// The records of the newest emails are needed for each recipient.
func TestRecords_Unavailable_451(t *testing.T) {
	t.Parallel()
	var records brokenRecords
	r := start(t, setup{options: func(o *submission.Options) { records.Store = o.Records; o.Records = &records }})
	c := r.signedIn()
	c.says("MAIL FROM:<no-reply@acme.example>", "250")
	records.broken.Store(true)
	c.says("RCPT TO:<"+alice+">", "451 4.3.0")
	r.charged(alice, 0)
	records.broken.Store(false)
	c.says("RCPT TO:<"+alice+">", "250")
	records.broken.Store(true)
	c.data(letter, "451 4.3.0")
	r.charged(alice, 0)
	records.broken.Store(false)
	c.data2(t, letter, "250")
	r.sent(1)
}

type brokenRecords struct {
	keyed.Store
	broken atomic.Bool
}

func (b *brokenRecords) Update(ctx context.Context, key string, step keyed.Step) (bool, error) {
	if b.broken.Load() {
		return false, throttle.ErrUnavailable
	}
	return b.Store.Update(ctx, key, step)
}
