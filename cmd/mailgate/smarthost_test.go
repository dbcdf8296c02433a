package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mailgate/mailgate/internal/mailtest"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
)

// smartHost is an Exim that sends through the door of a mailgate, perhaps by way of a proxy.
type smartHost struct {
	*mailtest.Server
	t     *testing.T
	relay *fault.Server
	door  string
	ops   client
}

func startSmartHost(t *testing.T, script fault.Script, through func(door string) string, settings ...string) *smartHost {
	t.Parallel()
	relay := fault.Run(t, script)
	p := startServer(t, settingsFor(relay.URL(), append([]string{inMemory, "MAILGATE_TIERS=hour=1/1h", "MAILGATE_LOOKUP_RATE=0", "MAILGATE_SUBMISSION_LISTEN=127.0.0.1:0"}, settings...)...))
	door := p.awaitLine(t, "serving", "smtp_address")
	if through != nil {
		door = through(door)
	}
	exim := mailtest.Start(t, mailtest.Options{SmartHost: &url.URL{Host: door, User: url.UserPassword("app", apiKey)}})
	return &smartHost{exim, t, relay, door, newClient(t, p.URL, adminKey)}
}

// submits has the Exim try an email once.
func (s *smartHost) submits(to ...string) {
	s.t.Helper()
	s.Submit(s.t, "no-reply@acme.example", strings.ReplaceAll(submitted, "\r\n", "\n"), to...)
}

// has checks what a mailbox was sent and is charged.
func (s *smartHost) has(mailbox string, mails, charges int) {
	s.t.Helper()
	got := 0
	for _, mail := range s.relay.Mails() {
		if mail.To == mailbox && !mail.Refused {
			got++
		}
	}
	if got != mails {
		s.t.Errorf("%s got %d emails, want %d; the log says\n%s", mailbox, got, mails, s.Log())
	}
	s.charged(mailbox, charges)
}

// charged waits for refunds.
func (s *smartHost) charged(mailbox string, want int) {
	s.t.Helper()
	servertest.Eventually(s.t, "the charges of "+mailbox, func() bool {
		return len(s.ops.must(s.t, "GET", "/admin/mailboxes/"+mailbox, "", 200).Body.Sends) == want
	})
}

// bounced waits until the queue is empty, and checks the bounces. Each has these words, and names this mailbox.
func (s *smartHost) bounced(want int, mailbox, words string) {
	s.t.Helper()
	all := s.Mails(s.t)
	if len(all) != want {
		s.t.Errorf("%d bounces, want %d; the log says\n%s", len(all), want, s.Log())
	}
	for _, one := range all {
		text := strings.Join(strings.Fields(string(one.Text)), " ") // it breaks lines
		if one.To != "no-reply@acme.example" || one.From != "" || !strings.Contains(text, words) || !strings.Contains(text, mailbox) {
			s.t.Errorf("the bounce from %q to %s has no %s of %s:\n%s", one.From, one.To, words, mailbox, one.Text)
		}
	}
}

const (
	anna = "anna@example.com"
	ben  = "ben@example.com"
)

// A refusal bounces once, with our words, and does not stay in the queue. The other recipient gets its email,
// whichever comes first, if not at once then with the next run of the queue.
func TestSmartHost_OneOfTwoRefused_BouncesOnceAndTheOtherIsSent(t *testing.T) {
	for name, to := range map[string][]string{"first": {anna, ben}, "last": {ben, anna}} {
		t.Run(name, func(t *testing.T) {
			s := startSmartHost(t, fault.Script{}, nil)
			s.submits(anna)
			s.bounced(0, "", "")
			s.submits(to...)
			s.RunQueue(t)
			s.bounced(1, anna, `550 5.7.1 limit "hour" of this mailbox reached; next email in `)
			s.has(anna, 1, 1)
			s.has(ben, 1, 1)
		})
	}
}

// The relay refuses a recipient for good, so nothing leaves. Another one, who is deferred, does not bounce for that.
func TestSmartHost_RelayRefusesTheOther_OnlyThatBounces(t *testing.T) {
	const lost = "lost@gone.example"
	s := startSmartHost(t, fault.Script{At: fault.RCPT, Kind: fault.Permanent, To: lost}, nil, "MAILGATE_SUBMISSION_DEFER=app")
	s.submits(anna)
	s.submits(lost, anna)
	s.RunQueue(t)
	if n := s.Queued(t); n != 1 {
		t.Errorf("%d emails are queued; the log says\n%s", n, s.Log())
	}
	s.ops.must(t, "POST", "/admin/mailboxes/"+anna+"/reset", "", 200)
	s.RunQueue(t)
	s.bounced(1, lost, "554 5.1.1 <"+lost+">: never")
	s.has(anna, 2, 1)
	s.charged(lost, 1)
}

// A deferral stays in the queue and does not bounce; it leaves when the mailbox may have it.
func TestSmartHost_Deferred_StaysUntilItMayLeave(t *testing.T) {
	s := startSmartHost(t, fault.Script{}, nil, "MAILGATE_SUBMISSION_DEFER=app")
	s.submits(anna)
	s.submits(anna)
	s.RunQueue(t)
	if n := s.Queued(t); n != 1 {
		t.Fatalf("%d emails are queued; the log says\n%s", n, s.Log())
	}
	s.has(anna, 1, 1)
	s.ops.must(t, "POST", "/admin/mailboxes/"+anna+"/reset", "", 200)
	s.RunQueue(t)
	s.bounced(0, "", "")
	s.has(anna, 2, 1)
}

// A lost reply neither sends an email twice nor charges it twice. What was delivered bounces only where the limit is
// reached, and with those words.
func TestSmartHost_ReplyLost_SentOnceAndNotBounced(t *testing.T) {
	for name, tt := range map[string]struct {
		script fault.Script
		lost   string // the reply, as long as there are losses
		losses int64
		mails  int    // that the relay has
		bounce string // "": there is none, and the last one is accepted
		limit  int
	}{
		"delivered":                    {lost: accepted, losses: 1, mails: 1, limit: 5},
		"delivered, lost twice":        {lost: accepted, losses: 2, mails: 1, limit: 5},
		"delivered, limit reached":     {lost: accepted, losses: 1, mails: 1, limit: 1, bounce: `550 5.7.1 limit "hour" of this mailbox reached`},
		"refused by the relay":         {fault.Script{At: fault.Dot, Kind: fault.Permanent}, "554 5.1.1 never", 1, 1, "554 5.1.1 never", 5},
		"deferred by the relay":        {fault.Script{At: fault.Dot, Kind: fault.Temporary, Times: 1}, "451 4.4.1 not now", 1, 2, "", 5},
		"not confirmed":                {fault.Script{At: fault.Dot, Kind: fault.HangUp}, "554 5.4.0 the relay did not confirm the email", 1, 1, "554 5.4.0 the relay did not confirm the email", 5},
		"not confirmed, limit reached": {fault.Script{At: fault.Dot, Kind: fault.HangUp}, "554 5.4.0 the relay did not confirm the email", 1, 1, `550 5.7.1 limit "hour" of this mailbox reached`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var losses atomic.Int64
			losses.Store(tt.losses)
			s := startSmartHost(t, tt.script, func(door string) string { return loseReplies(t, door, tt.lost, &losses) }, fmt.Sprintf("MAILGATE_TIERS=hour=%d/1h", tt.limit))
			s.submits(anna)
			for range tt.losses {
				if n := s.Queued(t); n != 1 {
					t.Fatalf("%d emails are queued; the log says\n%s", n, s.Log())
				}
				s.RunQueue(t)
			}
			if n := losses.Load(); n > 0 {
				t.Fatalf("%d replies are still to be lost; the log says\n%s", n, s.Log())
			}
			bounces := 1
			if tt.bounce == "" {
				bounces = 0
			}
			s.bounced(bounces, anna, tt.bounce)
			if n := len(s.relay.Mails()); n != tt.mails {
				t.Errorf("the relay got the email %d times, want %d", n, tt.mails)
			}
			s.charged(anna, 1)
		})
	}
}

// A queue whose email may come late tries it again until the limit lets it through, and no second one is sent.
func TestSmartHost_ReplyLostOfADeferredKey_SentOnceAndTheQueueEnds(t *testing.T) {
	var losses atomic.Int64
	losses.Store(1)
	s := startSmartHost(t, fault.Script{}, func(door string) string { return loseReplies(t, door, accepted, &losses) }, "MAILGATE_SUBMISSION_DEFER=app")
	s.submits(anna)
	s.RunQueue(t)
	if n := s.Queued(t); n != 1 {
		t.Errorf("%d emails are queued; the log says\n%s", n, s.Log())
	}
	s.ops.must(t, "POST", "/admin/mailboxes/"+anna+"/reset", "", 200)
	s.RunQueue(t)
	s.bounced(0, "", "")
	s.has(anna, 1, 0)
}

const accepted = "250 2.0.0 accepted by the relay"

// loseReplies is a proxy that cuts the connection in place of a reply of the door, so many times.
func loseReplies(t *testing.T, door, reply string, losses *atomic.Int64) (address string) {
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // closed
			}
			go func() {
				defer client.Close()
				if server, err := net.Dial("tcp", door); err == nil {
					defer server.Close()
					go toDoor(server, client)
					fromDoor(client, server, reply, losses)
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// toDoor passes on what a client says, and that it has said all, which Exim does with its QUIT.
func toDoor(server, client net.Conn) {
	_, _ = io.Copy(server, client)
	_ = server.(*net.TCPConn).CloseWrite()
}

func fromDoor(client, server net.Conn, reply string, losses *atomic.Int64) {
	lines := bufio.NewReader(server)
	for {
		line, err := lines.ReadString('\n')
		if err != nil || strings.HasPrefix(line, reply) && losses.Add(-1) >= 0 {
			return
		}
		if _, err := io.WriteString(client, line); err != nil {
			return
		}
	}
}
