package main

import (
	"encoding/base64"
	"fmt"
	"net/textproto"
	"strings"
	"syscall"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
)

// doorClient is a connection to the SMTP door that has signed in.
type doorClient struct {
	*textproto.Conn
	t *testing.T
}

const doorOpen = "MAILGATE_SUBMISSION_LISTEN=127.0.0.1:0"

func (p *process) door(t *testing.T) doorClient {
	t.Helper()
	return openDoor(t, p.awaitLine(t, "serving", "smtp_address"), "235")
}

// openDoor connects and signs in, to which this is the answer.
func openDoor(t *testing.T, address, want string) doorClient {
	t.Helper()
	c := doorClient{must.Get(textproto.Dial("tcp", address))(t), t}
	t.Cleanup(func() { c.Close() })
	c.reads("220")
	c.says("EHLO client.example", "250")
	c.says("AUTH PLAIN "+base64.StdEncoding.EncodeToString([]byte("\x00app\x00"+apiKey)), want)
	return c
}

func (c doorClient) says(line, want string) {
	c.t.Helper()
	must.OK(c.t, c.PrintfLine("%s", line))
	c.reads(want)
}

func (c doorClient) reads(want string) {
	c.t.Helper()
	for {
		line, err := c.ReadLine()
		if err != nil {
			c.t.Fatalf("%v, want %s", err, want)
		}
		if len(line) > 3 && line[3] == '-' {
			continue
		}
		if !strings.HasPrefix(line, want) {
			c.t.Errorf("read %q, want %s", line, want)
		}
		return
	}
}

func (c doorClient) to(recipient, want string) {
	c.t.Helper()
	c.says("MAIL FROM:<no-reply@acme.example>", "250")
	c.says("RCPT TO:<"+recipient+">", want)
}

func (c doorClient) text(want string) {
	c.t.Helper()
	c.says("DATA", "354")
	c.says(submitted+".", want)
}

// onRecord is how many emails a mailbox is charged, as an operator of a node reads it.
func (p *process) onRecord(t *testing.T, mailbox string) int {
	return len(newClient(t, p.URL, adminKey).must(t, "GET", "/admin/mailboxes/"+mailbox, "", 200).Body.Sends)
}

// Two nodes on one Redis have one limit, and an email that one has handed over is not sent again by the other.
// Operators find the email as one that came over HTTP.
func TestRedis_SMTPDoors_ShareLimitsAndReplies(t *testing.T) {
	t.Parallel()
	redis, relay := redistest.Alone(t), startRelay(t)
	two := "MAILGATE_TIERS=hour=2/1h"
	first, second := startServer(t, besideRedis(t, redis, relay.URL(), doorOpen, two)), startServer(t, besideRedis(t, redis, relay.URL(), doorOpen, two))
	loses := first.door(t)
	loses.to("alice@example.com", "250")
	loses.says("DATA", "354")
	must.OK(t, loses.PrintfLine("%s", submitted+"."))
	id := ""
	servertest.Eventually(t, "the email is sent", func() bool {
		for _, line := range first.Log.Lines(`"msg":"submission"`) {
			id, _ = line["id"].(string)
		}
		return id != ""
	})
	loses.Close() // without having read the reply
	servertest.Eventually(t, "the connection has ended", func() bool { return first.shows(t, "mailgate_smtp_connections 0") })

	again := second.door(t)
	again.to("alice@example.com", "250")
	again.text("250 2.0.0 accepted by the relay")
	if n := len(relay.List()); n != 1 {
		t.Errorf("%d emails left", n)
	}
	open := first.door(t)
	open.to("alice@example.com", "250")
	again.to("alice@example.com", `550 5.7.1 limit "hour" of this mailbox reached`)
	newClient(t, first.URL, apiKey).mustSend(t, "alice@example.com", 429)
	open.says("RSET", "250")
	does(t, operatorOf(second.URL), exitOK, id, "show", "alice@example.com")
	figures := newClient(t, first.URL, adminKey).must(t, "GET", "/admin/figures", "", 200).Raw
	if !strings.Contains(figures, `"sends":{"sent":1}`) {
		t.Errorf("the console shows %s", figures)
	}

	again.says("RCPT TO:<bob@example.com>", "250")
	if first.Stop(t, syscall.SIGTERM) != exitOK {
		t.Error("the first node does not end")
	}
	again.text("250")
}

// Open emails are refunded at SIGTERM, and their clients told.
func TestRedis_SMTPDoorStopped_Refunds(t *testing.T) {
	t.Parallel()
	redis, relay := redistest.Alone(t), startRelay(t)
	first, second := startServer(t, besideRedis(t, redis, relay.URL(), doorOpen)), startServer(t, besideRedis(t, redis, relay.URL(), doorOpen))
	charged, inText := first.door(t), first.door(t)
	charged.to("alice@example.com", "250")
	inText.to("bob@example.com", "250")
	inText.says("DATA", "354")
	must.OK(t, inText.PrintfLine("%s", submitted)) // and no final dot
	if a, b := second.onRecord(t, "alice@example.com"), second.onRecord(t, "bob@example.com"); a != 1 || b != 1 {
		t.Errorf("%d and %d are on record", a, b)
	}
	first.Signal(t, syscall.SIGTERM)
	charged.reads("421")
	inText.reads("421")
	if status := first.End(t); status != exitOK {
		t.Errorf("exit status %d", status)
	}
	for _, email := range []string{"alice@example.com", "bob@example.com"} { // known at the other node within a second
		servertest.Eventually(t, "a refund", func() bool {
			r, err := newClient(t, second.URL, adminKey).ask("GET", "/admin/mailboxes/"+email, "", nil)
			return err == nil && r.Status == 200 && len(r.Body.Sends) == 0 // and not 429, for a look too many
		})
	}
	again := second.door(t)
	again.to("alice@example.com", "250")
	again.text("250")
}

// While Redis is away a node that refuses says so, and what began before is refunded.
func TestRedis_AwayAndRefusing_SMTPDoorDefers(t *testing.T) {
	t.Parallel()
	redis, relay := redistest.Durable(t), startRelay(t)
	server := startServer(t, besideRedis(t, redis, relay.URL(), doorOpen, inMemory))
	c := server.door(t)
	c.to("alice@example.com", "250")
	redis.Kill()
	c.text("451 4.3.0 the records are unavailable")
	c.to("bob@example.com", "451 4.3.0 the records are unavailable")
	app := newClient(t, server.URL, apiKey)
	servertest.Eventually(t, "the end of readiness", func() bool { return app.get(t, "/readyz").Status == 503 })
	redis.Restart()
	servertest.Eventually(t, "the refund", func() bool {
		at := newClient(t, server.URL, adminKey).get(t, "/admin/mailboxes/alice@example.com")
		return at.Status == 200 && len(at.Body.Sends) == 0
	})
	c.says("RSET", "250")
	c.to("alice@example.com", "250")
	c.text("250")
	if n := len(relay.List()); n != 1 {
		t.Errorf("%d emails left", n)
	}
}

// While Redis is away a node that continues takes email by its own records, and tells Redis afterwards. What
// began with Redis ends without it.
func TestRedis_AwayAndContinuing_SMTPDoorSends(t *testing.T) {
	t.Parallel()
	redis, relay := redistest.Durable(t), startRelay(t)
	server, other := startServer(t, besideRedis(t, redis, relay.URL(), doorOpen)), startServer(t, besideRedis(t, redis, relay.URL(), doorOpen))
	c, began := server.door(t), server.door(t)
	began.to("bob@example.com", "250")
	redis.Kill()
	servertest.Eventually(t, "the node continues", func() bool {
		newClient(t, server.URL, apiKey).get(t, "/readyz") // asks it
		return server.shows(t, "mailgate_store_degraded 1")
	})
	began.text("250")
	c.to("alice@example.com", "250")
	c.text("250")
	c.to("alice@example.com", `550 5.7.1 limit "minute"`)
	if ready := newClient(t, server.URL, apiKey).must(t, "GET", "/readyz", "", 200); !strings.Contains(ready.Raw, `"degraded":true`) {
		t.Errorf("/readyz %s", ready.Raw)
	}
	servertest.Eventually(t, "a refusal in the log, as degraded", func() bool {
		line := server.Log.Lines(`"outcome":"quota-exceeded"`)
		return len(line) == 1 && fmt.Sprint(line[0]["degraded"]) == "true"
	})
	redis.Restart()
	servertest.Eventually(t, "the end of the outage", func() bool { return server.shows(t, "mailgate_store_degraded 0") })
	for _, mailbox := range []string{"alice@example.com", "bob@example.com"} {
		servertest.Eventually(t, "the email on the shared record", func() bool { return other.onRecord(t, mailbox) == 1 })
		newClient(t, other.URL, apiKey).mustSend(t, mailbox, 429)
	}
	if n := len(relay.List()); n != 2 {
		t.Errorf("%d emails left", n)
	}
}
