package local_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

const (
	killCallers  = 8
	killRegulars = 48
)

// A process that admits as fast as it can is killed at a random moment, several times over
// one directory: every admission that it acknowledged is on record, of a Policy by its id and
// of a counter in the count.
func TestTake_KilledProcess_ForgetsNothing(t *testing.T) {
	if dir := servertest.ChildDir(); dir != "" {
		admitUntilKilled(t, dir)
	}
	dir := t.TempDir()
	acknowledged := map[string]string{} // id to mailbox
	for round := range throttletest.Length(3, 10) {
		before := len(acknowledged)
		servertest.KillAfter(t, servertest.Child(t, dir), 500+rand.IntN(2000), func(line string) bool {
			mailbox, id, ok := strings.Cut(line, " is ")
			if ok {
				acknowledged[id] = mailbox
			}
			return ok
		})
		if len(acknowledged) == before {
			t.Fatalf("round %d: killed before anything was admitted", round)
		}
		compareWithDisk(t, dir, acknowledged, (round+1)*killCallers)
	}
	t.Logf("%d admissions", len(acknowledged))
}

// killLimiters are the limiters that the child takes from, with more room than it uses.
func killLimiters(t testing.TB, store *cache.Store) (tiers, counter *local.Limiter) {
	policy := throttletest.Policy(t, "day=1000/24h")
	window, err := throttle.NewSlidingWindow(throttle.Tier{Name: "day", Limit: 1_000_000, Window: 24 * time.Hour}, 24)
	if err != nil {
		t.Fatal(err)
	}
	return local.New(store.Table("tiers"), policy, nil), local.New(store.Table("counter"), window, nil)
}

// compareWithDisk expects every acknowledged admission once, and no more than so many others:
// each caller was waiting for one when it was killed.
func compareWithDisk(t *testing.T, dir string, acknowledged map[string]string, mostOthers int) {
	t.Helper()
	store := open(t, cache.Options{Dir: dir})
	tiers, counter := killLimiters(t, store)
	mailboxes := map[string][]string{}
	for id, mailbox := range acknowledged {
		mailboxes[mailbox] = append(mailboxes[mailbox], id)
	}
	others := 0
	for mailbox, ids := range mailboxes {
		h, err := tiers.History(ctx, mailbox)
		if err != nil {
			t.Fatal(err)
		}
		onRecord := map[string]bool{}
		for _, a := range h {
			onRecord[a.ID.String()] = true
		}
		for _, id := range ids {
			if !onRecord[id] {
				t.Fatalf("%s: of %d admissions %d are on record, without %s", mailbox, len(ids), len(h), id)
			}
		}
		if len(onRecord) != len(h) {
			t.Fatalf("%s: %d admissions are on record as %d", mailbox, len(onRecord), len(h))
		}
		others += len(h) - len(ids)
	}
	v, err := counter.Peek(ctx, "all")
	if err != nil {
		t.Fatal(err)
	}
	counted := 1_000_000 - v.Remaining() - len(acknowledged)
	if others > mostOthers || counted < 0 || counted > mostOthers {
		t.Fatalf("%d more on record and %d more counted than acknowledged, want 0 to %d", others, counted, mostOthers)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// admitUntilKilled is the child: it prints each admission after Take has returned. Each
// caller alternates between new mailboxes and the same few.
func admitUntilKilled(t *testing.T, dir string) {
	tiers, counter := killLimiters(t, open(t, cache.Options{Dir: dir}))
	var done sync.WaitGroup
	for caller := range killCallers {
		done.Go(func() {
			for n := 0; ; n++ {
				mailbox := fmt.Sprintf("%d-%d-%d@example.com", time.Now().UnixNano(), caller, n)
				if n%2 == 1 {
					mailbox = fmt.Sprintf("regular-%d@example.com", rand.IntN(killRegulars))
				}
				id := throttle.NewID()
				v, err := tiers.Take(ctx, mailbox, id)
				if err == nil && v.Allowed {
					v, err = counter.Take(ctx, "all", id)
				}
				if err != nil || !v.Allowed {
					t.Errorf("take: allowed %t, %v", v.Allowed, err)
					return
				}
				fmt.Println(mailbox, "is", id)
			}
		})
	}
	done.Wait()
}
