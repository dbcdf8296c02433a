package submission_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/idempotency"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/must"
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
		return regexp.MustCompile("outcome=(sent|unknown|rejected)").MatchString(r.log.String())
	})
	c.Close()
	servertest.Eventually(r.t, "the connection has ended", func() bool { return r.Connections() == 0 })
}

// A client that lost the reply sends the email again, and gets the first reply: no second email leaves, and
// nothing is charged. Where a limit is reached it is told that.
func TestLostReply_SameEmail_FirstReply(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tiers, rcpt, reply string
		script             fault.Script
	}{
		"its limit is reached":     {"minute=1/60s", "550 5.7.1 limit", "503", fault.Script{}},
		"its limit is not reached": {"hour=5/1h", "250", "250 2.0.0 accepted by the relay", fault.Script{}},
		"it was not confirmed":     {"hour=5/1h", "250", "554 5.4.0", fault.Script{At: fault.Dot, Kind: fault.HangUp}},
		"it was refused":           {"hour=5/1h", "250", "554 5.1.1 never", fault.Script{At: fault.Dot, Kind: fault.Permanent}},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, setup{tiers: tt.tiers, script: tt.script})
			r.loses(letter)
			for range 2 {
				c := r.signedIn()
				c.says("MAIL FROM:<no-reply@acme.example>", "250")
				c.says("RCPT TO:<"+alice+">", tt.rcpt)
				if tt.rcpt == "250" {
					c.data(letter, tt.reply)
				}
				c.says("QUIT", "221") // that its reply was read changes nothing
			}
			if n := len(r.relay.Mails()); n != 1 {
				t.Errorf("the relay got %d emails", n)
			}
			r.charged(alice, 1)
		})
	}
}

// The Message-ID says which email it is: a text that was made again under it is not sent again, and the same text
// under another is another email.
func TestRepeat_MessageID_SaysWhichEmail(t *testing.T) {
	t.Parallel()
	r := start(t, setup{tiers: "hour=5/1h"})
	c := r.signedIn()
	c.data2(t, letter, "250")
	c.data2(t, strings.Replace(letter, "123456", "654321", 1), "250 2.0.0 accepted by the relay")
	r.sent(1)
	c.data2(t, strings.Replace(letter, "<1@", "<3@", 1), "250")
	r.sent(2)
	c.data2(t, "Message-ID: <1@acme.example>\r\n"+letter, "250") // of two, neither
	r.sent(3)
	r.charged(alice, 3)
}

// A text that the client gave up, and whose end comes after its repeat was sent, does not leave.
func TestLostReply_EndComesAfterTheRepeat_FirstReply(t *testing.T) {
	t.Parallel()
	r := start(t, setup{tiers: "hour=3/1h"})
	late := r.signedIn()
	late.to(alice)
	late.says("DATA", "354")
	late.write(letter)
	c := r.signedIn()
	c.data2(t, letter, "250")
	late.says(".", "250 2.0.0 accepted")
	r.sent(1)
	r.charged(alice, 1)
}

// While an email is handed over, its repeat is deferred.
func TestRepeat_InProgress_451(t *testing.T) {
	t.Parallel()
	r := start(t, setup{tiers: "hour=3/1h", script: fault.Script{At: fault.Dot, Kind: fault.Silence}})
	first := r.signedIn()
	first.to(alice)
	first.says("DATA", "354")
	first.write(letter + ".\r\n")
	servertest.Eventually(t, "the relay has the text", func() bool { return len(r.relay.Mails()) == 1 })
	c := r.signedIn()
	c.data2(t, letter, "451 4.3.2")
	r.charged(alice, 1)
	r.relay.Cut()
	first.reads("554 5.4.0")
	c.data2(t, letter, "554 5.4.0")
	r.charged(alice, 1)
}

// An email is known by its Message-ID, whatever else went to the mailbox meanwhile. One that did not leave changes nothing
// about the one before it, and is sent when it comes again.
func TestLostReply_OtherEmailsBetween_SentOnce(t *testing.T) {
	t.Parallel()
	r := start(t, setup{tiers: "hour=9/1h"})
	r.loses(letter)
	r.relay.Play(fault.Script{At: fault.Dot, Kind: fault.Temporary})
	c := r.signedIn()
	c.data2(t, other, "451 4.4.1")
	r.relay.Play(fault.Script{})
	for sent := 1; sent < 4; sent++ {
		c.data2(t, letter, "250 2.0.0 accepted by the relay")
		r.sent(sent)
		r.charged(alice, sent)
		c.data2(t, strings.Replace(other, "<2@", fmt.Sprintf("<%d@", sent+1), 1), "250 2.0.0 accepted by the relay [")
	}
	r.signedIn().data2(t, letter, "250 2.0.0 accepted by the relay")
	r.sent(4)
	r.charged(alice, 4)
}

// data2 sends one more email to alice.
func (c *client) data2(t *testing.T, text, want string) {
	t.Helper()
	c.to(alice)
	c.data(text, want)
}

// Beside other recipients the email is sent to those who have not had it.
func TestRepeat_BesideOthers_SentToThose(t *testing.T) {
	t.Parallel()
	r := start(t, setup{tiers: "hour=3/1h"})
	r.loses(letter)
	c := r.signedIn()
	c.to(bob, alice)
	c.data(letter, "250 2.0.0 accepted by the relay [")
	if to := r.relay.Mails()[1].To; to != bob {
		t.Errorf("it went to %s", to)
	}
	c.to(alice, bob, "carol@example.com")
	c.data(letter, "250")
	if to := r.relay.Mails()[2].To; to != "carol@example.com" {
		t.Errorf("it went to %s", to)
	}
	r.charged(alice, 1)
	r.charged(bob, 1)
}

// An email that is open uses the limit of its mailbox until it ends.
func TestOpen_OtherConnection_Limited(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	first, second := r.signedIn(), r.signedIn()
	first.to(alice)
	second.says("MAIL FROM:<no-reply@acme.example>", "250")
	second.says("RCPT TO:<"+alice+">", "550 5.7.1 limit")
	first.says("RSET", "250")
	second.says("RCPT TO:<"+alice+">", "250")
	second.data(letter, "250")
	r.charged(alice, 1)
}

// Another node that shares the records gives the first reply, too.
func TestLostReply_OtherNode_FirstReply(t *testing.T) {
	t.Parallel()
	var shared submission.Options
	r := start(t, setup{tiers: "hour=3/1h", options: func(o *submission.Options) { shared = *o }})
	r.loses(letter)
	node := start(t, setup{options: func(o *submission.Options) { o.Repeats = shared.Repeats; o.Delivery.Reload(*shared.Delivery.Live()) }})
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

// Nothing is sent if it is not known whether it was before.
func TestRepeats_Unavailable_451(t *testing.T) {
	t.Parallel()
	records := &brokenRecords{Store: keyed.Local(must.Get(cache.Open(cache.Options{Now: func() int64 { return time.Now().UnixMilli() }}))(t).Table("emails"))}
	r := start(t, setup{options: func(o *submission.Options) { o.Repeats = idempotency.New(records, 30_000) }})
	c := r.signedIn()
	c.to(alice)
	records.broken.Store(true)
	c.data(letter, "451 4.3.0")
	r.charged(alice, 0)
	r.sent(0)
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
