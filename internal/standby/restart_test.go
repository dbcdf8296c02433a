package standby_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/servertest"
	"github.com/mailgate/mailgate/throttle"
)

const addrVariable = "STANDBY_TEST_REDIS"

// A node that is killed in an outage tells Redis after its next start what it said it admitted.
func TestKill_InOutage_JournalToldLater(t *testing.T) {
	if dir := servertest.ChildDir(); dir != "" {
		admitUntilKilled(t, dir)
		return
	}
	server := redistest.Alone(t)
	dir := t.TempDir()
	server.Kill()
	child := servertest.Child(t, dir)
	child.Env = append(child.Env, addrVariable+"="+server.Addr)
	said := map[string]throttle.ID{}
	servertest.KillAfter(t, child, 40, func(line string) bool {
		words := strings.Fields(line)
		if len(words) != 3 || words[0] != "admitted" {
			return false
		}
		id, err := throttle.ParseID(words[2])
		if err != nil {
			t.Fatal(err)
		}
		said[words[1]] = id
		return true
	})
	n := openOn(t, dir, server.Addr)
	for key, id := range said { // in the same outage it goes on where it was
		if h, err := n.mailbox.History(t.Context(), key); err != nil || h.Find(id) < 0 {
			t.Fatalf("the node has forgotten a send: %v, %v", h, err)
		}
	}
	if s := n.State(); s.Journal < len(said) || !s.Degraded {
		t.Errorf("after the restart: %+v", s)
	}
	server.Restart(t)
	n.Start()
	n.awaitHealthy(t)
	for key, id := range said {
		if history(t, server.Client(), key).Find(id) < 0 {
			t.Errorf("Redis was not told of an admission")
		}
	}
}

func admitUntilKilled(t *testing.T, dir string) {
	n := openOn(t, dir, os.Getenv(addrVariable))
	n.Start()
	for i := 0; ; i++ {
		key := fmt.Sprintf("key%d", i)
		a := n.admit(t, key, true)
		fmt.Printf("admitted %s %s\n", key, a.ID)
	}
}

// However often Redis goes and comes back, one node never admits more than the tiers.
func TestTake_RedisComesAndGoes_NeverMoreThanTheTiers(t *testing.T) {
	server := redistest.Alone(t, "appendonly yes", "appendfsync always")
	n := start(t, server)
	const keys, callers = 150, 6
	var admitted [keys]atomic.Int64
	var alone, together, next atomic.Int64
	var stop atomic.Bool
	var callersDone sync.WaitGroup
	for range callers {
		callersDone.Go(func() {
			for !stop.Load() {
				i := next.Add(1) / 8 % keys
				v, err := n.mailbox.Take(t.Context(), fmt.Sprint("k", i), throttle.NewID())
				if err == nil && v.Allowed {
					admitted[i].Add(1)
					if v.Degraded {
						alone.Add(1)
					} else {
						together.Add(1)
					}
				}
			}
		})
	}
	moreCalls := func() {
		from := next.Load()
		servertest.Eventually(t, "more calls", func() bool { return next.Load() > from+300 })
	}
	for range 4 {
		moreCalls()
		server.Kill()
		n.awaitAlone(t)
		moreCalls()
		server.Restart(t)
		servertest.Eventually(t, "Redis to be asked", func() bool { return !n.State().Alone })
	}
	stop.Store(true)
	callersDone.Wait()
	n.awaitHealthy(t)
	for i := range admitted {
		got := history(t, server.Client(), fmt.Sprint("k", i))
		if said := admitted[i].Load(); said > 3 || int64(len(got)) < said {
			t.Errorf("key %d: %d admitted, Redis has %d", i, said, len(got))
		}
	}
	t.Logf("%d admitted alone, %d together", alone.Load(), together.Load())
}

// A slower clock of the machine opens no window early: the node's own goes on from Redis's.
func TestClock_Restart_GoesOnFromRedis(t *testing.T) {
	server := redistest.Alone(t)
	dir := t.TempDir()
	n := openOn(t, dir, server.Addr)
	n.admit(t, "alice", false)
	offset := n.clock.Now() - time.Now().UnixMilli()
	if offset < -1000 || offset > 1000 {
		t.Errorf("the clock is %d ms from the server's on one machine", offset)
	}
	before := n.clock.Now()
	n.end()
	if n = openOn(t, dir, server.Addr); n.clock.Now() < before {
		t.Errorf("the clock was at %d, and is at %d after a restart", before, n.clock.Now())
	}
}
