package cluster_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/verify"
	"github.com/mailgate/mailgate/verify/cluster"
)

const (
	racers = 64
	minute = int64(60_000)
)

func open(t testing.TB, o redisstore.Options) *cluster.Book {
	t.Helper()
	return cluster.New(openStore(t, o))
}

func add(t testing.TB, book verify.Book, mailbox string, h verify.Hash, lifetime int64) {
	t.Helper()
	if err := book.Add(context.Background(), mailbox, h, lifetime); err != nil {
		t.Fatal(err)
	}
}

func expect(t testing.TB, book verify.Book, mailbox string, h verify.Hash, want verify.Result) {
	t.Helper()
	if got, err := book.Check(context.Background(), mailbox, h); got != want || err != nil {
		t.Fatalf("%v, %v; want %v", got, err, want)
	}
}

// race lets 64 bring a code at once, and counts the answers.
func race(t testing.TB, book verify.Book, mailbox string, h verify.Hash) map[verify.Result]int {
	var (
		done   sync.WaitGroup
		mu     sync.Mutex
		counts = map[verify.Result]int{}
	)
	for range racers {
		done.Go(func() {
			result, err := book.Check(context.Background(), mailbox, h)
			if err != nil {
				t.Errorf("check: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			counts[result]++
		})
	}
	done.Wait()
	return counts
}

// The answers to some steps are lost after Redis has taken them. The book asks again: a
// right code stays right for the one whose answer was lost, and is so for no one else.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	proxy := redistest.Proxy(t, server.Addr)
	book := open(t, redisstore.Options{URL: proxy.URL(), Timeout: patient})
	add(t, book, "warm", verify.Hash{9}, minute)
	expect(t, book, "warm", verify.Hash{9}, verify.Correct)
	const rounds = 100
	for round := range rounds {
		mailbox := "lost-" + time.Duration(round).String()
		proxy.CutReplies(1, "evalsha")
		add(t, book, mailbox, verify.Hash{1}, minute)
		proxy.CutReplies(2, "evalsha")
		counts := race(t, book, mailbox, verify.Hash{1})
		if counts[verify.Correct] != 1 || counts[verify.Expired] != racers-1 {
			t.Fatalf("round %d: %v, want one correct", round, counts)
		}

		add(t, book, mailbox, verify.Hash{1}, minute)
		add(t, book, mailbox, verify.Hash{2}, minute)
		proxy.CutReplies(1, "evalsha")
		if err := book.Remove(context.Background(), mailbox, verify.Hash{2}); err != nil {
			t.Fatal(err)
		}
		expect(t, book, mailbox, verify.Hash{2}, verify.Incorrect)
		proxy.CutReplies(1, "evalsha")
		if err := book.Forget(context.Background(), mailbox); err != nil {
			t.Fatal(err)
		}
		expect(t, book, mailbox, verify.Hash{1}, verify.Expired)
	}
	if lost := proxy.Counts().Lost; lost < 4*rounds {
		t.Errorf("only %d replies were lost: the test shows too little", lost)
	}
}

// A server that hangs and comes back does not use up the codes of callers who have gone.
func TestWhatComesTooLateIsNotDone(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	hasty := open(t, redisstore.Options{URL: server.URL(), Timeout: 250 * time.Millisecond})
	book := open(t, redisstore.Options{URL: server.URL(), Timeout: patient})
	ctx := context.Background()
	if err := book.Forget(ctx, "late"); err != nil { // the server knows the scripts from here on
		t.Fatal(err)
	}
	add(t, book, "late", verify.Hash{1}, minute)
	for _, err := hasty.Check(ctx, "warm", verify.Hash{}); err != nil; {
		_, err = hasty.Check(ctx, "warm", verify.Hash{}) // until the server's clock is known
	}
	server.Pause()
	if result, err := hasty.Check(ctx, "late", verify.Hash{1}); !errors.Is(err, verify.ErrUnavailable) || result == verify.Correct {
		t.Errorf("check: %v, %v", result, err)
	}
	if err := hasty.Forget(ctx, "late"); !errors.Is(err, verify.ErrUnavailable) {
		t.Errorf("forget: %v", err)
	}
	// The server's clock is known to within a timeout: when two more have given up, both
	// are too late for certain.
	for range 2 {
		if err := hasty.Forget(ctx, "another"); !errors.Is(err, verify.ErrUnavailable) {
			t.Errorf("forget: %v", err)
		}
	}
	server.Resume()
	expect(t, book, "late", verify.Hash{1}, verify.Correct)
}

// With replicas to confirm, what they do not have is not answered for. A wrong code needs
// none.
func TestConfirmed(t *testing.T) {
	t.Parallel()
	master := redistest.Alone(t)
	host, port, _ := net.SplitHostPort(master.Addr)
	replica := redistest.Alone(t, "replicaof "+host+" "+port)
	book := open(t, redisstore.Options{URL: master.URL(), Confirm: 1, Timeout: 3 * time.Second})
	ctx := context.Background()
	err := verify.ErrUnavailable
	for tries := 0; err != nil; tries++ { // until the replica is there
		if err = book.Add(ctx, "confirmed", verify.Hash{1}, minute); err != nil && tries == 100 {
			t.Fatal(err)
		}
	}
	if n := replica.Client().Exists(ctx, "mailgate:verify.codes:{}confirmed").Val(); n != 1 {
		t.Error("a code that was confirmed is not at the replica")
	}
	replica.Pause()
	if result, err := book.Check(ctx, "confirmed", verify.Hash{2}); result != verify.Incorrect || err != nil {
		t.Errorf("a wrong code: %v, %v", result, err)
	}
	if result, err := book.Check(ctx, "confirmed", verify.Hash{1}); !errors.Is(err, verify.ErrUnavailable) || result == verify.Correct {
		t.Errorf("a right code: %v, %v", result, err)
	}
	if err := book.Add(ctx, "unconfirmed", verify.Hash{1}, minute); !errors.Is(err, verify.ErrUnavailable) || errors.Is(err, throttle.ErrUnchanged) {
		t.Errorf("add: %v", err)
	}
	replica.Resume()
}

// What Redis refuses to do is proof: whoever goes on alone need not fear that it was done.
func TestARefusalIsProof(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	book := open(t, redisstore.Options{URL: server.URL(), Timeout: patient})
	ctx := context.Background()
	if err := server.Client().ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := book.Add(ctx, "refused", verify.Hash{1}, minute); !errors.Is(err, verify.ErrUnavailable) || !errors.Is(err, throttle.ErrUnchanged) {
		t.Errorf("%v", err)
	}
	ended, end := context.WithCancel(ctx)
	end()
	if err := book.Add(ended, "refused", verify.Hash{1}, minute); !errors.Is(err, verify.ErrUnavailable) || !errors.Is(err, throttle.ErrUnchanged) {
		t.Errorf("for nobody: %v", err)
	}
}

func TestErrorsNameNobody(t *testing.T) {
	t.Parallel()
	book := open(t, redisstore.Options{URL: redistest.Alone(t, "rename-command EVALSHA hidden").URL(), Timeout: patient})
	hash := verify.Hash([]byte("a hash of a code"))
	ctx := context.Background()
	_, checked := book.Check(ctx, "alice@example.com", hash)
	for call, err := range map[string]error{
		"check":  checked,
		"add":    book.Add(ctx, "alice@example.com", hash, minute),
		"record": book.Record(ctx, "alice@example.com", verify.Kept{Hash: hash, Expires: time.Now().UnixMilli() + minute}),
		"remove": book.Remove(ctx, "alice@example.com", hash),
		"forget": book.Forget(ctx, "alice@example.com"),
	} {
		if !errors.Is(err, verify.ErrUnavailable) || strings.Contains(err.Error(), "alice") || strings.Contains(err.Error(), "hash of") {
			t.Errorf("%s: %v", call, err)
		}
	}
}
