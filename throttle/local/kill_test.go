package local_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// What the process that is killed admits to: new mailboxes, and the same few over and over.
const (
	killPolicy   = "day=1000/24h" // more than a mailbox gets in all rounds
	killCallers  = 8
	killRegulars = 48
)

// A process that admits as fast as it can is killed at a random moment, several times
// over on one directory: every admission it had acknowledged is on record, a mailbox's first
// and those that came after others.
func TestKilledProcessForgetsNothing(t *testing.T) {
	if dir := servertest.ChildDir(); dir != "" {
		admitUntilKilled(t, dir)
	}
	dir := t.TempDir()
	acknowledged := map[string]string{} // reservation to mailbox
	rounds, _ := killing()
	for round := range rounds {
		before := len(acknowledged)
		killWhileAdmitting(t, dir, acknowledged)
		if len(acknowledged) == before {
			t.Fatalf("round %d: killed before anything was admitted", round)
		}
		compareWithDisk(t, dir, acknowledged, (round+1)*killCallers)
	}
	t.Logf("%d admissions", len(acknowledged))
}

// killing is how often a process is killed, and after how many more than 500 admissions at most.
func killing() (rounds, most int) {
	if testing.Short() {
		return 3, 2_500
	}
	return 5, 8_000
}

func killWhileAdmitting(t *testing.T, dir string, acknowledged map[string]string) {
	t.Helper()
	_, most := killing()
	servertest.KillAfter(t, servertest.Child(t, dir), 500+rand.IntN(most), func(line string) bool {
		mailbox, id, ok := strings.Cut(line, " is ")
		if ok {
			acknowledged[id] = mailbox
		}
		return ok
	})
}

// compareWithDisk expects every acknowledged admission, once, and no more than so many others:
// each caller was at one when he was killed.
func compareWithDisk(t *testing.T, dir string, acknowledged map[string]string, mostOthers int) {
	t.Helper()
	disk, err := cache.Open(cache.DiskOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	limiter := openLimiter(t, disk, local.Options{Policy: throttletest.Policy(t, killPolicy)})
	mailboxes := map[string][]string{}
	for id, mailbox := range acknowledged {
		mailboxes[mailbox] = append(mailboxes[mailbox], id)
	}
	others := 0
	for mailbox, ids := range mailboxes {
		h, err := limiter.History(context.Background(), mailbox)
		if err != nil {
			t.Fatal(err)
		}
		onRecord := map[string]bool{}
		for _, a := range h {
			onRecord[a.ID.String()] = true
		}
		for _, id := range ids {
			if !onRecord[id] {
				t.Fatalf("%s: of %d admissions, of which %d are on record, %s is not", mailbox, len(ids), len(h), id)
			}
		}
		if len(onRecord) != len(h) {
			t.Fatalf("%s: %d admissions are on record as %d", mailbox, len(onRecord), len(h))
		}
		others += len(h) - len(ids)
	}
	if others > mostOthers {
		t.Fatalf("%d are on record that nobody was told of, want at most %d", others, mostOthers)
	}
	limiter.Close()
	if err := disk.Close(); err != nil {
		t.Fatal(err)
	}
}

// admitUntilKilled is the child: it prints each admission after the yes. Each caller turns
// from a mailbox that is new to a regular and back.
func admitUntilKilled(t *testing.T, dir string) {
	limiter := openLimiter(t, cachetest.Open(t, dir), local.Options{Policy: throttletest.Policy(t, killPolicy), Size: small})
	var done sync.WaitGroup
	for caller := range killCallers {
		done.Go(func() {
			for n := 0; ; n++ {
				mailbox := fmt.Sprintf("%d-%d-%d@example.com", time.Now().UnixNano(), caller, n)
				if n%2 == 1 {
					mailbox = fmt.Sprintf("regular-%d@example.com", rand.IntN(killRegulars))
				}
				id := throttle.NewID()
				v, err := limiter.Take(context.Background(), mailbox, id)
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
