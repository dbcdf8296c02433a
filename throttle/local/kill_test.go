package local_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// A process that admits as fast as it can is killed at a random moment, several times
// over on one directory: every admission it had acknowledged is on record.
func TestKilledProcessForgetsNothing(t *testing.T) {
	if dir := os.Getenv(childEnv); dir != "" {
		admitUntilKilled(t, dir)
	}
	dir := t.TempDir()
	acknowledged := map[string]string{} // mailbox to reservation
	for round := range 5 {
		before := len(acknowledged)
		killWhileAdmitting(t, dir, acknowledged)
		if len(acknowledged) == before {
			t.Fatalf("round %d: killed before anything was admitted", round)
		}
		compareWithDisk(t, dir, acknowledged)
	}
	t.Logf("%d admissions", len(acknowledged))
}

func killWhileAdmitting(t *testing.T, dir string, acknowledged map[string]string) {
	t.Helper()
	cmd := childCommand(t, dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	enough := 500 + rand.IntN(8_000)
	for n := 0; ; n++ {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			break // a line without its end was cut off by the kill
		}
		if err != nil {
			t.Fatal(err)
		}
		if mailbox, id, ok := strings.Cut(strings.TrimSpace(line), " is "); ok {
			acknowledged[mailbox] = id
		}
		if n == enough {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the process was not killed, it ended by itself: %v", err)
	}
}

func compareWithDisk(t *testing.T, dir string, acknowledged map[string]string) {
	t.Helper()
	disk, err := cache.Open(cache.DiskOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := local.New(disk, local.Options{Policy: throttle.DefaultPolicy()})
	if err != nil {
		t.Fatal(err)
	}
	for mailbox, id := range acknowledged {
		h, err := limiter.History(context.Background(), mailbox)
		if err != nil || len(h) != 1 || h[0].ID.String() != id {
			t.Fatalf("%s: history %v, %v; want %s", mailbox, h, err, id)
		}
	}
	limiter.Close()
	if err := disk.Close(); err != nil {
		t.Fatal(err)
	}
}

// admitUntilKilled is the child: it prints each admission after the yes.
func admitUntilKilled(t *testing.T, dir string) {
	disk := cachetest.Open(t, dir)
	limiter := openLimiter(t, disk, local.Options{Policy: throttle.DefaultPolicy(), Size: small})
	var done sync.WaitGroup
	for caller := range 8 {
		done.Go(func() {
			for n := 0; ; n++ {
				mailbox, id := fmt.Sprintf("%d-%d-%d@example.com", time.Now().UnixNano(), caller, n), throttle.NewID()
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
