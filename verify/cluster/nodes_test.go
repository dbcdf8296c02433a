package cluster_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/verify"
)

func TestConformanceSentinel(t *testing.T) {
	t.Parallel()
	conform(t, redistest.Sentinel(t).URL(), 2_000)
}

// A failover forgets nothing that the replica had confirmed: a code that was mailed is
// right afterwards, and one that was used stays used.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	servers := redistest.Sentinel(t)
	servers.AwaitReplica()
	sure := open(t, redisstore.Options{URL: servers.URL(), Timeout: patient, Confirm: 1})
	book := open(t, redisstore.Options{URL: servers.URL(), Timeout: time.Second})
	mailed, used := verify.Hash{1}, verify.Hash{2}
	add(t, sure, "mailed", mailed, verify.DefaultLifetime)
	add(t, sure, "used", used, verify.DefaultLifetime)
	expect(t, sure, "used", used, verify.Correct)
	servers.Failover()
	check := func(mailbox string, h verify.Hash) verify.Result {
		t.Helper()
		return redistest.Healed(t, func() (verify.Result, error) { return book.Check(context.Background(), mailbox, h) })
	}
	if got := check("used", used); got != verify.Expired {
		t.Errorf("a code that was used is %v after the failover", got)
	}
	if got := check("mailed", verify.Hash{3}); got != verify.Incorrect {
		t.Errorf("a wrong code is %v after the failover", got)
	}
	if got := check("mailed", mailed); got != verify.Correct {
		t.Errorf("a code that was mailed is %v after the failover", got)
	}
}

// While its slot moves from master to master a code is right for one of 64, and none that
// is added meanwhile is lost.
func TestRaceThroughASlotMigration(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t)
	for name, confirm := range map[string]int{"one copy": 0, "confirmed": 1} {
		t.Run(name, func(t *testing.T) {
			// The braces put all mailboxes into the one slot that moves.
			book := open(t, redisstore.Options{URL: servers.URL(), Prefix: "{moving}", Timeout: patient, Confirm: confirm})
			for round := range 6 {
				raceThroughAMigration(t, servers, book, fmt.Sprint(name, round))
			}
		})
	}
}

func raceThroughAMigration(t *testing.T, servers *redistest.ClusterServers, book verify.Book, mailbox string) {
	t.Helper()
	key := "{moving}verify.codes:" + mailbox
	from := servers.MasterOf(key)
	to := servers.AnotherMaster(from)
	right, late := verify.Hash{1}, verify.Hash{2}
	add(t, book, mailbox, right, verify.DefaultLifetime)
	moved := make(chan map[verify.Result]int)
	servers.BeginMigration(key, from, to)
	go func() { moved <- race(t, book, mailbox, right) }()
	servers.MoveKey(key, from, to)
	counts := <-moved
	add(t, book, mailbox, late, verify.DefaultLifetime)
	servers.FinishMigration(key, from, to)
	if counts[verify.Correct] != 1 || counts[verify.Expired] != racers-1 {
		t.Errorf("%v, want one correct", counts)
	}
	expect(t, book, mailbox, right, verify.Incorrect)
	expect(t, book, mailbox, late, verify.Correct)
	if err := servers.Client().Del(context.Background(), key).Err(); err != nil { // no key may stay behind when the slot moves again
		t.Fatal(err)
	}
}
