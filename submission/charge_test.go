package submission_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/apikey"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/submission"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

const alice, bob = "alice@example.com", "bob@example.com"

// Whatever ends an email before the relay has taken it refunds its recipients.
func TestRefund_EachEnd_NothingCharged(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(r *rig, c *client){
		"RSET":            func(_ *rig, c *client) { c.says("RSET", "250") },
		"EHLO":            func(_ *rig, c *client) { c.says("EHLO again.example", "250") },
		"QUIT":            func(_ *rig, c *client) { c.says("QUIT", "221") },
		"lost connection": func(_ *rig, c *client) { c.Close() },
		"lost in the text": func(_ *rig, c *client) {
			c.says("DATA", "354")
			c.write(letter)
			c.Close()
		},
		"slow after RCPT": func(_ *rig, c *client) { c.reads("421 4.4.2"); c.ends() },
		"slow text": func(_ *rig, c *client) {
			c.says("DATA", "354")
			c.write(letter)
			c.reads("421 4.4.2")
			c.ends()
		},
		"slow octets": func(_ *rig, c *client) {
			c.says("DATA", "354")
			var err error
			for began := time.Now(); err == nil && time.Since(began) < 10*time.Second; time.Sleep(20 * time.Millisecond) {
				_, err = c.Write([]byte("RSET\r\n")[:1])
				if c.in.Buffered() > 0 {
					break
				}
				must.OK(c.t, c.SetReadDeadline(time.Now().Add(time.Millisecond)))
				_, _ = c.in.Peek(1)
			}
			must.OK(c.t, c.SetReadDeadline(time.Now().Add(time.Minute)))
			c.reads("421 4.4.2")
			c.ends()
		},
		"slow chunk": func(_ *rig, c *client) {
			c.write("BDAT 1000 LAST\r\n" + letter)
			c.reads("421 4.4.2")
			c.ends()
		},
		"lost in a chunk": func(_ *rig, c *client) {
			c.write("BDAT 1000 LAST\r\n" + letter)
			c.Close()
		},
		"ended in the text under TLS": func(r *rig, c *client) {
			c.says("DATA", "354")
			c.write(letter)
			must.OK(c.t, c.Conn.(*tls.Conn).CloseWrite())
		},
		"shutdown": func(r *rig, c *client) {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			must.OK(c.t, r.Shutdown(ctx))
			c.reads("421")
			c.ends()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, setup{hurry: func(t *submission.Times) {
				if t.Arrival = time.Minute; strings.HasPrefix(name, "slow") {
					t.Arrival = 400 * time.Millisecond
				}
			}})
			var c *client
			if strings.HasSuffix(name, "TLS") {
				c = r.dial()
				c.says("EHLO client.example", "250")
				c.secure()
				c.says("EHLO client.example", "250")
				c.says("AUTH PLAIN "+plain("app", appSecret), "235")
			} else {
				c = r.signedIn()
			}
			c.to(alice, bob)
			r.charged(alice, 1)
			r.charged(bob, 1)
			end(r, c)
			r.eventuallyCharged(alice, 0)
			r.eventuallyCharged(bob, 0)
			r.sent(0)
			servertest.Eventually(t, "the texts are forgotten", func() bool { return r.Texts() == 0 })
		})
	}
}

// One address is charged and sent to once in an email, and an alias is another.
func TestRecipients_SameAndAlias_OneCopyEach(t *testing.T) {
	t.Parallel()
	r := start(t, setup{tiers: "hour=5/1h"})
	c := r.signedIn()
	c.to(alice, alice, "alice@EXAMPLE.com", "alice+1@example.com")
	c.data(letter, "250")
	r.charged(alice, 2)
	if to := r.relay.Mails()[0].To; to != "alice@example.com alice+1@example.com" {
		t.Errorf("it went to %s", to)
	}
}

// Some clients go on with the rest when one recipient is refused, and some give up.
func TestRecipients_OneRefused_ExactCharges(t *testing.T) {
	t.Parallel()
	for _, goesOn := range []bool{true, false} {
		r := start(t, setup{})
		c := r.signedIn()
		c.to(bob)
		c.data(letter, "250")
		c.to(alice)
		c.says("RCPT TO:<"+bob+">", "550 5.7.1")
		want := 0
		if goesOn {
			want = 1
			c.data(letter, "250")
		} else {
			c.Close()
		}
		r.eventuallyCharged(alice, want)
		r.charged(bob, 1)
		r.sent(1 + want)
	}
}

// An email leaves to all recipients or to none. One that the relay refused stays charged, and is named.
func TestRecipients_RelayRefusesOne_NothingLeaves(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script     fault.Script
		reply      string
		alice, bob int
	}{
		"refused":  {fault.Script{At: fault.RCPT, Kind: fault.Permanent, To: "bob"}, "554 5.1.1 <bob@example.com>: never", 0, 1},
		"deferred": {fault.Script{At: fault.RCPT, Kind: fault.Temporary, To: "bob"}, "451 4.4.1 <bob@example.com>: not now", 0, 0},
		"unknown":  {fault.Script{At: fault.Dot, Kind: fault.Reset}, "554 5.4.0", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, setup{script: tt.script})
			c := r.signedIn()
			c.to(alice, bob)
			c.data(letter, tt.reply)
			r.charged(alice, tt.alice)
			r.charged(bob, tt.bob)
			c.says("NOOP", "250")
		})
	}
}

// A relay that is slow up to the text is left, and one that is slow after it leaves the outcome open.
func TestRelay_Slow_AnsweredInTime(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		at      fault.Step
		reply   string
		charged int
	}{
		"before the text": {fault.RCPT, "451 4.4.1", 0},
		"after it":        {fault.Dot, "554 5.4.0", 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, setup{
				script: fault.Script{At: tt.at, Kind: fault.Silence},
				hurry:  func(t *submission.Times) { t.Begin, t.Answer = 200*time.Millisecond, 400*time.Millisecond },
			})
			c := r.signedIn()
			c.to(alice)
			c.data(letter, tt.reply)
			r.charged(alice, tt.charged)
		})
	}
}

// The text is not changed, and one line is put in front of it.
func TestText_EveryWay_Unchanged(t *testing.T) {
	t.Parallel()
	r := start(t, setup{tiers: "hour=50/1h"})
	c := r.signedIn()
	text := letter + ".\r\n..\r\n \t\r\nü\x01\x7f\xff\r\n\r\n"
	stuffed := strings.TrimPrefix(strings.ReplaceAll("\r\n"+text, "\r\n.", "\r\n.."), "\r\n")
	c.to(alice)
	c.data(stuffed, "250")
	c.to(bob)
	c.says("DATA", "354")
	for i := range len(stuffed) { // each octet alone
		c.write(stuffed[i : i+1])
	}
	c.write(".\r\n")
	c.reads("250 2.0.0 accepted")
	mails := r.relay.Mails()
	if len(mails) != 2 {
		t.Fatalf("%d emails", len(mails))
	}
	for _, mail := range mails {
		sent := strings.TrimPrefix(strings.ReplaceAll("\r\n"+string(mail.Text), "\r\n..", "\r\n."), "\r\n")
		front, rest, _ := strings.Cut(sent, "From: ")
		if "From: "+rest != text || !strings.HasPrefix(front, "Received: from client.example by acme.example\r\n\twith ESMTPA id ") || strings.Contains(front, "127.0.0.1") {
			t.Errorf("%q", sent)
		}
	}
}

// A shutdown lets an email be handed over that has come, and refuses new connections.
func TestShutdown_HandingOver_Finishes(t *testing.T) {
	t.Parallel()
	r := start(t, setup{script: fault.Script{At: fault.Dot, Kind: fault.Drip, DripEvery: 20 * time.Millisecond}})
	c, idle := r.signedIn(), r.signedIn()
	c.to(alice)
	c.says("DATA", "354")
	c.write(letter + ".\r\n")
	servertest.Eventually(t, "the relay has the text", func() bool { return len(r.relay.Mails()) == 1 })
	var group sync.WaitGroup
	group.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		must.OK(t, r.Shutdown(ctx))
	})
	idle.reads("421")
	c.reads("250")
	c.reads("421")
	group.Wait()
	if _, err := net.Dial("tcp", r.addr); err == nil {
		t.Error("a connection was taken after the shutdown")
	}
	r.charged(alice, 1)
}

// A shutdown that runs out of time cuts off what a relay does not answer.
func TestShutdown_RelaySilent_CutOff(t *testing.T) {
	t.Parallel()
	r := start(t, setup{script: fault.Script{At: fault.RCPT, Kind: fault.Silence}})
	c := r.signedIn()
	c.to(alice)
	c.says("DATA", "354")
	c.write(letter + ".\r\n")
	servertest.Eventually(t, "the relay is asked", func() bool { return strings.Contains(fmt.Sprintf("%s", r.relay.Received()), "RCPT") })
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := r.Shutdown(ctx); err == nil {
		t.Error("it says that nothing was cut off")
	}
	r.eventuallyCharged(alice, 0)
}

// Floods without a key do not keep out those with one, and no key keeps out the others.
func TestConnections_Flood_KeysGetIn(t *testing.T) {
	t.Parallel()
	r := start(t, setup{options: func(o *submission.Options) { o.MaxConnections = 8 }})
	var flood []*client
	for range 20 {
		flood = append(flood, r.dial())
	}
	for range 4 {
		r.signedIn()
	}
	c := r.dial()
	c.says("EHLO client.example", "250")
	c.says("AUTH PLAIN "+plain("app", appSecret), "421 4.3.2") // its share is half
	c.ends()
	late := r.dial()
	late.says("EHLO client.example", "250")
	late.says("AUTH PLAIN "+plain(lateKey, appSecret+"-late"), "235")
	open := 0
	for _, c := range flood {
		must.OK(t, c.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
		if _, err := io.Copy(io.Discard, c.in); err != nil { // no end within the time
			open++
		}
	}
	if open > 4 {
		t.Errorf("%d connections without a key are open", open)
	}
}

// All connections that may be are taken by keys.
func TestConnections_Full_421(t *testing.T) {
	t.Parallel()
	r := start(t, setup{options: func(o *submission.Options) { o.Keys, o.MaxConnections = apikey.Keys{}, 2 }})
	for range 2 {
		c := r.dial()
		c.says("EHLO client.example", "250")
		c.says("MAIL FROM:<no-reply@acme.example>", "250")
	}
	c := r.connect()
	c.reads("421 4.3.2")
	c.ends()
}

// No more than so many octets of texts are held at once.
func TestTexts_TooMany_452(t *testing.T) {
	t.Parallel()
	r := start(t, setup{
		script: fault.Script{At: fault.Dot, Kind: fault.Silence},
		hurry: func(t *submission.Times) {
			t.Arrival, t.Begin, t.Answer, t.Texts = time.Minute, time.Minute, time.Minute, 512<<10
		},
	})
	big := ofSize(120 << 10) // for which 128 KiB are reserved
	var waiting []*client
	for i := range 4 {
		c := r.signedIn()
		c.to(fmt.Sprintf("a%d@d%d.example", i, i))
		c.says("DATA", "354")
		c.write(big + ".\r\n")
		waiting = append(waiting, c)
	}
	servertest.Eventually(t, "four texts are held", func() bool { return r.Texts() == 512<<10 })
	c := r.signedIn()
	c.to(alice)
	c.data(letter, "452 4.3.1")
	r.charged(alice, 0)
	c.says("NOOP", "250")
	r.relay.Play(fault.Script{})
	r.relay.Cut()
	for _, c := range waiting {
		c.reads("")
	}
	servertest.Eventually(t, "all are forgotten", func() bool { return r.Texts() == 0 })
}

// Each rule counts an email of this door by its mailbox, its key and the template "smtp". There is no visitor, and no purpose.
func TestRules_EachTrait_CountsOrNot(t *testing.T) {
	t.Parallel()
	tests := []struct {
		by     rules.By
		second string
		reply  string
	}{
		{rules.ByMailbox, "b@another.example", "250"},
		{rules.ByPurpose, bob, "250"},
		{rules.ByAPIKey, "b@another.example", "550 5.7.1 limit \"few\" of this caller reached"},
		{rules.ByTemplate, "b@another.example", "550 5.7.1 limit \"few\" of this template reached"},
		{rules.ByAll, "b@another.example", "550 5.7.1 limit \"few\" of "},
		{rules.ByDomain, bob, "550 5.7.1 limit \"few\" of this mailbox's domain reached"},
		{rules.ByDomain, "b@another.example", "250"},
		{rules.ByClientIP, bob, "250"},
	}
	tested := map[rules.By]bool{}
	for _, tt := range tests {
		tested[tt.by] = true
	}
	for _, by := range rules.Bys() {
		if !tested[by] {
			t.Errorf("say here whether an email of this door has the trait %s", by)
		}
	}
	for _, tt := range tests {
		t.Run(string(tt.by)+" "+tt.second, func(t *testing.T) {
			t.Parallel()
			r := start(t, setup{more: func(counted func(throttle.Algorithm) *throttle.Limiter) []rules.Rule {
				return []rules.Rule{{Name: "more", By: tt.by, Limiter: counted(must.Get(throttle.ParsePolicy("few=1/1h"))(t))}}
			}})
			c := r.signedIn()
			c.to(alice)
			c.says("RCPT TO:<"+tt.second+">", tt.reply)
			c.says("RSET", "250")
			c.to(tt.second) // what was charged is refunded, to all rules
			c.data(letter, "250")
			r.charged(alice, 0)
			r.charged(tt.second, 1)
		})
	}
}

// A short wait in a queue is waited for, and a longer one than the email may take is told at once.
func TestQueue_Wait_SentOr451(t *testing.T) {
	t.Parallel()
	for window, reply := range map[time.Duration]string{300 * time.Millisecond: "250", 20 * time.Second: "451 4.3.2"} {
		r := start(t, setup{more: func(counted func(throttle.Algorithm) *throttle.Limiter) []rules.Rule {
			return []rules.Rule{{Name: "pace", By: rules.ByAll, Limiter: counted(must.Get(throttle.NewLeakyBucket(throttle.Tier{Name: "pace", Limit: 1, Window: window}, 5))(t))}}
		}})
		c := r.signedIn()
		began := time.Now()
		c.to(alice)
		c.data(letter, "250")
		c.to(bob, "carol@example.com")
		c.data(letter, reply)
		sent := map[bool]int{true: 1}[reply == "250"]
		if took := time.Since(began); sent == 1 && took < 500*time.Millisecond {
			t.Errorf("three recipients left after %v", took)
		}
		r.charged(bob, sent)
		r.sent(1 + sent)
	}
}
