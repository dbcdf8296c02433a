package standby_test

import (
	"context"
	"testing"

	"github.com/mailgate/mailgate/internal/idempotency"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/internal/verify"
)

var (
	alice = verify.Recipient{Mailbox: "alice", Address: "alice@example.com", Purpose: "sign-up"}
	bob   = verify.Recipient{Mailbox: "bob", Address: "bob@example.com"}
)

func (n *node) issue(t testing.TB, to verify.Recipient) string {
	t.Helper()
	return must.Get(n.codes.Issue(context.Background(), to))(t)
}

func (n *node) verify(t testing.TB, from verify.Recipient, code string, want verify.Result) {
	t.Helper()
	if o, err := n.codes.Verify(context.Background(), from, code); err != nil || o.Result != want {
		t.Errorf("the result is %d, want %d; %v", o.Result, want, err)
	}
}

// unchecked expects that a code of alice is not answered.
func (n *node) unchecked(t testing.TB, code string) {
	t.Helper()
	_, err := n.codes.Verify(context.Background(), alice, code)
	unavailable(t, err)
}

// A code that was used in an outage ends those before it everywhere, and none after it. One that was
// not used then is right once afterwards.
func TestCodes_InOutage_OnlyThoseMadeAloneAreChecked(t *testing.T) {
	t.Parallel()
	server := redistest.Durable(t)
	n, other := open(t, t.TempDir(), server.URL()), start(t, server.URL())
	shared := n.issue(t, alice)
	away(t, server, n, other)
	n.unchecked(t, shared)
	used, another := n.issue(t, alice), n.issue(t, bob)
	n.unchecked(t, shared)
	other.unchecked(t, used)
	n.verify(t, alice, used, verify.Correct)
	n.unchecked(t, used)
	back(t, server, other)
	after := other.issue(t, alice)
	n.Start()
	n.awaitHealthy(t)
	other.verify(t, alice, shared, verify.Incorrect)
	other.verify(t, alice, used, verify.Incorrect)
	other.verify(t, alice, after, verify.Correct)
	other.verify(t, bob, another, verify.Correct)
	n.verify(t, bob, another, verify.Expired)
}

// When Redis is back, a code from before the outage is checked, and a mailbox is reset, at once: neither waits until others' entries
// are synced.
func TestCodes_RedisIsBack_CheckedBeforeTheJournalIsEmpty(t *testing.T) {
	t.Parallel()
	server := redistest.Durable(t)
	n := open(t, t.TempDir(), server.URL()) // whose worker syncs nothing
	code := n.issue(t, alice)
	away(t, server, n)
	n.issue(t, bob)
	n.admit(t, "bob", true)
	n.admit(t, "carol", true)
	n.unchecked(t, code)
	server.Restart()
	servertest.Eventually(t, "Redis to be back", func() bool { return n.State().Away == 0 })
	n.verify(t, alice, code, verify.Correct)
	if cleared, err := n.mailbox.Reset(t.Context(), "carol"); err != nil || cleared != 1 {
		t.Errorf("cleared %d, %v", cleared, err)
	}
	if left := n.State().Journal; left != 2 {
		t.Errorf("the journal has %d operations, want the two of bob", left)
	}
}

// A code that Redis was told of unheard is not right at the node any more, also after a restart of
// the node, and right at Redis once.
func TestCodes_TellingLost_RightOnce(t *testing.T) {
	t.Parallel()
	for name, restarted := range map[string]bool{"running": false, "restarted": true} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Durable(t)
			proxy := redistest.Proxy(t, server.Addr)
			dir := t.TempDir()
			n, other := open(t, dir, proxy.URL()), start(t, server.URL())
			away(t, server, n)
			code := n.issue(t, alice)
			server.Restart()
			servertest.Eventually(t, "Redis to be back", func() bool {
				_, err := n.mailbox.Peek(context.Background(), "other")
				return err == nil && n.State().Away == 0
			})
			proxy.CutReplies(1, valueWritten)
			_, err := n.codes.Issue(t.Context(), alice)
			unavailable(t, err)
			if proxy.Sent(valueWritten) != 1 {
				t.Fatal("no reply was lost")
			}
			other.awaitHealthy(t)
			server.Kill()
			if restarted {
				n.end()
				n = open(t, dir, proxy.URL())
			}
			n.awaitAlone(t)
			n.unchecked(t, code)
			second := n.issue(t, alice) // is checked alone
			n.verify(t, alice, second, verify.Correct)
			server.Restart()
			n.Start()
			n.awaitHealthy(t)
			other.awaitHealthy(t)
			other.verify(t, alice, code, verify.Expired)
		})
	}
}

var (
	orderDone  = idempotency.Name{Caller: "shop", Key: "done"}
	orderBegun = idempotency.Name{Caller: "shop", Key: "begun"}
	orderAlone = idempotency.Name{Caller: "shop", Key: "alone"}
	answer     = idempotency.Answer{Status: 202, Body: []byte("sent")}
)

func (n *node) begin(t testing.TB, name idempotency.Name, want idempotency.State, alone bool) idempotency.Lease {
	t.Helper()
	o, err := n.requests.Begin(context.Background(), name, idempotency.Fingerprint{1})
	if err != nil || o.State != want || o.Degraded != alone || want == idempotency.Replay && string(o.Answer.Body) != "sent" {
		t.Fatalf("state %d, alone %v, answer %q, %v; want %d, alone %v", o.State, o.Degraded, o.Answer.Body, err, want, alone)
	}
	return o.Lease
}

func (n *node) finish(t testing.TB, l idempotency.Lease) {
	t.Helper()
	if ok, err := n.requests.HandOver(context.Background(), l); err != nil || !ok {
		t.Fatalf("handed over %v, %v", ok, err)
	}
	if kept, err := n.requests.Finish(context.Background(), l, answer); err != nil || !kept {
		t.Fatalf("kept %v, %v", kept, err)
	}
}

// In an outage a retry gets the answer from before, and what was begun on Redis is not handed over.
// Redis is told of what was done and abandoned alone.
func TestRequests_InOutage_AnsweredAloneAndTold(t *testing.T) {
	t.Parallel()
	server := redistest.Durable(t)
	n, other := start(t, server.URL()), start(t, server.URL())
	n.finish(t, n.begin(t, orderDone, idempotency.Started, false))
	lease := n.begin(t, orderBegun, idempotency.Started, false)
	away(t, server, n)
	n.begin(t, orderDone, idempotency.Replay, true)
	n.finish(t, n.begin(t, orderAlone, idempotency.Started, true))
	_, err := n.requests.HandOver(t.Context(), lease)
	unavailable(t, err)
	if freed, err := n.requests.Abandon(t.Context(), lease); err != nil || !freed {
		t.Errorf("freed %v, %v", freed, err)
	}
	back(t, server, n, other)
	other.begin(t, orderAlone, idempotency.Replay, false)
	other.begin(t, orderBegun, idempotency.Started, false)
}

// A step whose reply was lost may have been taken, so it is not taken alone as well, even if
// Redis has died since.
func TestUpdate_ReplyLostAsRedisDies_NotTakenAlone(t *testing.T) {
	server := redistest.Alone(t)
	proxy := redistest.Proxy(t, server.Addr)
	n := start(t, proxy.URL())
	proxy.DropReplies(1, valueWritten)
	issued := make(chan error)
	go func() {
		_, err := n.codes.Issue(t.Context(), alice)
		issued <- err
	}()
	servertest.Eventually(t, "the value to be written", func() bool { return proxy.Lost() > 0 })
	server.Kill()
	unavailable(t, <-issued)
	n.awaitAlone(t)
	if s := n.State(); s.Journal != 0 {
		t.Errorf("after a lost reply: %+v", s)
	}
}
