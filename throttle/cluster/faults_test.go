package cluster_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
)

// A redis that is silent, in whatever way, costs a caller the timeout and no more.
func TestSilenceEndsAtTheTimeout(t *testing.T) {
	const timeout = 2 * time.Second
	const late = timeout * 19 / 10 // a busy machine takes some, and twice the timeout is not it
	server := redistest.Alone(t)
	proxy := redistest.Proxy(t, server.Addr)
	limiter := open(t, redisstore.Options{URL: proxy.URL(), Timeout: timeout})
	mailbox := mailboxOf("silence")
	admit(t, limiter, mailbox)

	ask := func(what string) {
		t.Helper()
		var done sync.WaitGroup
		for range callers {
			done.Go(func() {
				begin := time.Now()
				v, err := limiter.Take(context.Background(), mailbox, throttle.NewID())
				if took := time.Since(begin); !errors.Is(err, throttle.ErrUnavailable) || v.Allowed || took > late {
					t.Errorf("%s: allowed %v, %v after %v", what, v.Allowed, err, took)
				}
			})
		}
		done.Wait()
	}
	proxy.Swallow()
	ask("requests vanish")
	ask("requests vanish, again")
	proxy.Refuse()
	ask("connections are refused")
	proxy.Pass()
	take(t, limiter, mailbox, throttle.NewID())

	server.Pause()
	ask("the server hangs")
	server.Resume()
	take(t, limiter, mailbox, throttle.NewID())

	server.Kill()
	ask("the server is dead")
	server.Restart()
	admit(t, limiter, mailboxOf("back"))
}

// A decision whose answer was lost was sent once, also when nothing is under way any more,
// and is charged once when it is asked for again.
func TestADecisionIsSentOnce(t *testing.T) {
	server := redistest.Alone(t)
	proxy := redistest.Proxy(t, server.Addr)
	store := openStore(t, redisstore.Options{URL: proxy.URL(), Timeout: 2 * time.Second})
	limiter, err := cluster.New(store, throttle.DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	admit(t, limiter, mailboxOf("warm"))
	sent := proxy.Commands("evalsha")
	proxy.DropReplies(1, "evalsha")
	mailbox, id := mailboxOf("dropped"), throttle.NewID()
	if _, err := limiter.Take(context.Background(), mailbox, id); !errors.Is(err, throttle.ErrUnavailable) {
		t.Fatalf("take whose answer was lost: %v", err)
	}
	store.Close() // waits for what was sent
	if n := proxy.Commands("evalsha") - sent; n != 1 {
		t.Errorf("the decision was sent %d times", n)
	}
	again := open(t, redisstore.Options{URL: proxy.URL(), Timeout: patient})
	if v := take(t, again, mailbox, id); !v.Allowed || v.Tiers()[2].Remaining != 9 {
		t.Errorf("taken again with the same id: allowed %v, tiers %v", v.Allowed, v.Tiers())
	}
	if released, err := again.Release(context.Background(), mailbox, id); !released || err != nil {
		t.Errorf("release: %v, %v", released, err)
	}
}

func TestSentinelFailover(t *testing.T) {
	servers := redistest.Sentinel(t)
	servers.AwaitReplica()
	limiter := open(t, redisstore.Options{URL: servers.URL(), Timeout: time.Second})
	mailbox := mailboxOf("failover")
	id := admit(t, open(t, redisstore.Options{URL: servers.URL(), Timeout: time.Second, Confirm: 1}), mailbox)
	servers.Failover()
	again := redistest.Healed(t, func() (throttle.Verdict, error) {
		return limiter.Take(context.Background(), mailbox, throttle.NewID())
	})
	if again.Allowed {
		t.Fatal("the failover forgot an admission that the replica had confirmed")
	}
	h := redistest.Healed(t, func() (throttle.History, error) { return limiter.History(context.Background(), mailbox) })
	if len(h) != 1 || h[0].ID != id {
		t.Errorf("history %v", h)
	}
	admit(t, limiter, mailboxOf("after"))
}

// A server that hangs and comes back makes no decision for callers who have gone.
func TestDecisionsThatComeTooLateAreNotMade(t *testing.T) {
	server := redistest.Alone(t)
	limiter := open(t, redisstore.Options{URL: server.URL(), Timeout: 250 * time.Millisecond})
	another := open(t, redisstore.Options{URL: server.URL(), Timeout: 250 * time.Millisecond})
	for _, way := range waysToThree(limiter) { // the server's clock and all scripts are known from here on
		admit(t, way, mailboxOf("warm"))
	}
	server.Pause()
	var mailboxes []string
	// When the second lot gives up, the first is too late for certain.
	for _, limiters := range [][]throttle.Limiter{waysToThree(limiter), waysToThree(another)} {
		var done sync.WaitGroup
		for i := range callers {
			mailbox := mailboxOf("late")
			mailboxes = append(mailboxes, mailbox)
			done.Go(func() {
				if v, err := limiters[i%len(limiters)].Take(context.Background(), mailbox, throttle.NewID()); err == nil || v.Allowed {
					t.Errorf("allowed %v, %v", v.Allowed, err)
				}
			})
		}
		done.Wait()
	}
	server.Resume()
	limiters := waysToThree(open(t, redisstore.Options{URL: server.URL(), Timeout: patient}))
	for i, mailbox := range mailboxes[:callers] {
		recorded, err := limiters[i%len(limiters)].Reset(context.Background(), mailbox)
		if err != nil || recorded != 0 {
			t.Fatalf("mailbox %d was charged %d times, %v", i, recorded, err)
		}
	}
	admit(t, limiter, mailboxes[0])
}

// Nor does it forget a mailbox for them, or put on record what may have been given back since.
func TestWhatComesTooLateIsNotDone(t *testing.T) {
	server, ctx := redistest.Alone(t), context.Background()
	now := server.Client().Time(ctx).Val().UnixMilli()
	limiter := open(t, redisstore.Options{URL: server.URL(), Timeout: 250 * time.Millisecond})
	another := open(t, redisstore.Options{URL: server.URL(), Timeout: 250 * time.Millisecond})
	sure := waysToThree(open(t, redisstore.Options{URL: server.URL(), Timeout: patient}))
	kept, missed := mailboxOf("kept"), mailboxOf("missed")
	first, never := kept, missed
	for i, way := range sure { // all scripts are known from here on
		admit(t, way, kept)
		record(t, way, mailboxOf("warm"), now)
		if _, err := way.Reset(ctx, mailboxOf("warm")); err != nil {
			t.Fatal(err)
		}
		for _, l := range []opened{limiter, another} {
			admit(t, waysToThree(l)[i], mailboxOf("warm"))
		}
	}
	server.Pause()
	for _, l := range []opened{limiter, another} { // as above
		var done sync.WaitGroup
		for _, way := range waysToThree(l) {
			done.Go(func() {
				if _, err := way.Reset(ctx, kept); !errors.Is(err, throttle.ErrUnavailable) {
					t.Errorf("reset: %v", err)
				}
			})
			done.Go(func() {
				if err := way.(throttle.Recorder).Record(ctx, missed, throttle.Admission{ID: throttle.NewID(), At: now}); !errors.Is(err, throttle.ErrUnavailable) {
					t.Errorf("record: %v", err)
				}
			})
		}
		done.Wait()
		kept, missed = mailboxOf("kept"), mailboxOf("missed") // of the second lot some may be in time
	}
	server.Resume()
	for i, way := range sure {
		if forgotten, err := way.Reset(ctx, first); err != nil || forgotten != 1 {
			t.Errorf("way %d: %d are on record, %v", i, forgotten, err)
		}
		if recorded, err := way.Reset(ctx, never); err != nil || recorded != 0 {
			t.Errorf("way %d: %d were put on record, %v", i, recorded, err)
		}
	}
}

func record(t *testing.T, by throttle.Limiter, mailbox string, at int64) {
	t.Helper()
	if err := by.(throttle.Recorder).Record(context.Background(), mailbox, throttle.Admission{ID: throttle.NewID(), At: at}); err != nil {
		t.Fatal(err)
	}
}

// One master that hangs takes its own mailboxes along and no others.
func TestAHungMasterStopsOnlyItsOwn(t *testing.T) {
	servers := redistest.Cluster(t)
	limiter := open(t, redisstore.Options{URL: servers.URL(), Timeout: 2 * time.Second})
	admit(t, limiter, mailboxOf("warm"))
	hung := servers.Masters[0]
	ctx, slots := context.Background(), servers.Client()
	var mailboxes []string
	others := map[string]bool{}
	for range 600 {
		mailbox := mailboxOf("any")
		mailboxes = append(mailboxes, mailbox)
		master, err := slots.MasterForKey(ctx, "mailgate:{}"+mailbox)
		if err != nil {
			t.Fatal(err)
		}
		others[mailbox] = master.Options().Addr != hung.Addr
	}
	for _, s := range slices.Concat(servers.Masters, servers.Replicas) { // a failover would stop the others for a moment
		if err := s.Client().ConfigSet(ctx, "cluster-node-timeout", "60000").Err(); err != nil {
			t.Fatal(err)
		}
	}
	hung.Pause()
	defer hung.Resume()
	var asked, failed atomic.Int64
	var done sync.WaitGroup
	for caller := range 30 {
		done.Go(func() {
			for _, mailbox := range mailboxes[caller*20 : caller*20+20] {
				_, err := limiter.Take(ctx, mailbox, throttle.NewID())
				if others[mailbox] {
					asked.Add(1)
					if err != nil {
						failed.Add(1)
					}
				}
			}
		})
	}
	done.Wait()
	if failed.Load() > 0 {
		t.Errorf("%d of %d takes at other masters failed", failed.Load(), asked.Load())
	}
}
