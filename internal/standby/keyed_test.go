package standby_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/verify"
)

var alice = verify.Recipient{Mailbox: "alice", Address: "alice@example.com", Purpose: "sign-up"}

func (n *node) issue(t testing.TB) (code string) {
	t.Helper()
	code, err := n.codes.Issue(context.Background(), alice)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// verify expects a result.
func (n *node) verify(t testing.TB, code string, want verify.Result) {
	t.Helper()
	if o, err := n.codes.Verify(context.Background(), alice, code); err != nil || o.Result != want {
		t.Errorf("the result is %d, want %d; %v", o.Result, want, err)
	}
}

// A code that was used in an outage ends those before it everywhere, and none after it.
func TestCodes_InOutage_OnlyThoseMadeAloneAreChecked(t *testing.T) {
	server := redistest.Alone(t, "appendonly yes", "appendfsync always")
	n, other := open(t, t.TempDir(), server.URL()), start(t, server.URL())
	shared := n.issue(t)
	server.Kill()
	n.awaitAlone(t)
	other.awaitAlone(t)
	unchecked := func(n *node, code string) {
		t.Helper()
		_, err := n.codes.Verify(t.Context(), alice, code)
		unavailable(t, err)
	}
	unchecked(n, shared)
	used := n.issue(t)
	unchecked(n, shared)
	unchecked(other, used)
	n.verify(t, used, verify.Correct)
	unchecked(n, used)
	server.Restart()
	other.awaitHealthy(t)
	after := other.issue(t)
	n.Start()
	n.awaitHealthy(t)
	other.verify(t, shared, verify.Incorrect)
	other.verify(t, used, verify.Incorrect)
	other.verify(t, after, verify.Correct)
}

func TestCodes_MadeAlone_RightOnRedisOnce(t *testing.T) {
	server := redistest.Alone(t)
	n, other := start(t, server.URL()), start(t, server.URL())
	server.Kill()
	n.awaitAlone(t)
	code := n.issue(t)
	server.Restart()
	n.awaitHealthy(t)
	other.awaitHealthy(t)
	other.verify(t, code, verify.Correct)
	n.verify(t, code, verify.Expired)
	server.Kill()
	n.awaitAlone(t)
	_, err := n.codes.Verify(t.Context(), alice, code)
	unavailable(t, err)
}

// A code that Redis was told of unheard is not right at the node any more, also after a restart of
// the node, and right at Redis once.
func TestCodes_TellingLost_RightOnce(t *testing.T) {
	for name, restarted := range map[string]bool{"running": false, "restarted": true} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Alone(t, "appendonly yes", "appendfsync always")
			proxy := redistest.Proxy(t, server.Addr)
			dir := t.TempDir()
			n, other := open(t, dir, proxy.URL()), start(t, server.URL())
			server.Kill()
			n.awaitAlone(t)
			code := n.issue(t)
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
			_, err = n.codes.Verify(t.Context(), alice, code)
			unavailable(t, err)
			second := n.issue(t) // is checked alone
			n.verify(t, second, verify.Correct)
			server.Restart()
			n.Start()
			n.awaitHealthy(t)
			other.awaitHealthy(t)
			other.verify(t, code, verify.Expired)
		})
	}
}

var (
	name  = idempotency.Name{Caller: "shop", Key: "order-1"}
	print = idempotency.Fingerprint{1}
)

func (n *node) begin(t testing.TB, want idempotency.State, alone bool) idempotency.Outcome {
	t.Helper()
	o, err := n.requests.Begin(context.Background(), name, print)
	if err != nil || o.State != want || o.Alone != alone {
		t.Fatalf("state %d, alone %v, %v; want %d, alone %v", o.State, o.Alone, err, want, alone)
	}
	return o
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

var answer = idempotency.Answer{Status: 202, Body: []byte("sent")}

func TestRequests_Mirrored_RetryInOutageIsAnswered(t *testing.T) {
	server := redistest.Alone(t)
	n := start(t, server.URL())
	n.finish(t, n.begin(t, idempotency.Started, false).Lease)
	server.Kill()
	n.awaitAlone(t)
	if o := n.begin(t, idempotency.Replay, true); !bytes.Equal(o.Answer.Body, answer.Body) {
		t.Errorf("the answer is %q", o.Answer.Body)
	}
}

func TestRequests_BegunOnRedis_NotHandedOverAlone(t *testing.T) {
	server := redistest.Alone(t, "appendonly yes", "appendfsync always")
	n, other := start(t, server.URL()), start(t, server.URL())
	lease := n.begin(t, idempotency.Started, false).Lease
	server.Kill()
	n.awaitAlone(t)
	_, err := n.requests.HandOver(t.Context(), lease)
	unavailable(t, err)
	if freed, err := n.requests.Abandon(t.Context(), lease); err != nil || !freed {
		t.Errorf("freed %v, %v", freed, err)
	}
	server.Restart()
	n.awaitHealthy(t)
	other.awaitHealthy(t)
	other.begin(t, idempotency.Started, false)
}

func TestRequests_DoneAlone_RedisIsTold(t *testing.T) {
	server := redistest.Alone(t)
	n, other := start(t, server.URL()), start(t, server.URL())
	server.Kill()
	n.awaitAlone(t)
	n.finish(t, n.begin(t, idempotency.Started, true).Lease)
	server.Restart()
	n.awaitHealthy(t)
	other.awaitHealthy(t)
	if o := other.begin(t, idempotency.Replay, false); !bytes.Equal(o.Answer.Body, answer.Body) {
		t.Errorf("the answer is %q", o.Answer.Body)
	}
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
