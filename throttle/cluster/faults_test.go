package cluster_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

const callers = 64

var threeAMinute = mustPolicy("minute=3/60s,hour=5/1h")

func mustPolicy(text string) throttle.Policy {
	p, err := throttle.ParsePolicy(text)
	if err != nil {
		panic(err)
	}
	return p
}

// race lets 64 callers take for one mailbox while something happens, and returns how many
// were admitted. As many begin before each step of it as after the last.
func race(t *testing.T, limiter throttle.Limiter, mailbox string, steps ...func()) int {
	t.Helper()
	var admitted atomic.Int64
	var done sync.WaitGroup
	begin := func() {
		for range callers / (len(steps) + 1) {
			done.Go(func() {
				if v, err := limiter.Take(context.Background(), mailbox, throttle.NewID()); err != nil {
					t.Error(err)
				} else if v.Allowed {
					admitted.Add(1)
				}
			})
		}
	}
	for _, step := range steps {
		begin()
		step()
	}
	begin()
	done.Wait()
	return int(admitted.Load())
}

// wantThree asks for three on record, and forgets them.
func wantThree(t *testing.T, limiter throttle.Limiter, mailbox string, admitted int) {
	t.Helper()
	recorded, err := limiter.Reset(context.Background(), mailbox)
	if admitted != 3 || recorded != 3 || err != nil {
		t.Fatalf("%d admitted and %d on record, want 3; %v", admitted, recorded, err)
	}
}

// eachWay has the first of waysToThree, the tiers, race through a thousand rounds, and each
// of the others through some.
func eachWay(round func(way int)) (rounds int) {
	for way := range 1 + len(threeMeters) {
		many := length(1000)
		if way > 0 {
			many = length(250)
		}
		for range many {
			round(way)
		}
		rounds += many
	}
	return rounds
}

// Redis forgets its scripts again and again, and no caller sees anything of it.
func TestRaceThroughAScriptFlush(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	clock := throttletest.NewClock(1_800_000_000_000)
	limiters := waysToThree(openWith(t, threeAMinute, redisstore.Options{URL: server.URL(), Clock: clock.Now, Timeout: patient}))
	rounds := eachWay(func(way int) {
		limiter, mailbox := limiters[way], mailboxOf("flush")
		admitted := race(t, limiter, mailbox, func() {
			if err := server.Client().ScriptFlush(context.Background()).Err(); err != nil {
				t.Error(err)
			}
		})
		wantThree(t, limiter, mailbox, admitted)
	})
	if n := server.Refused("NOSCRIPT"); n < rounds {
		t.Errorf("a script was unknown %d times in %d rounds: the test shows too little", n, rounds)
	}
}

// The answers to some decisions are lost after redis has made them. The limiter asks again,
// so that the callers see nothing of it, and nobody is charged twice.
func TestRaceThroughLostReplies(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	proxy := redistest.Proxy(t, server.Addr)
	clock := throttletest.NewClock(1_800_000_000_000)
	limiters := waysToThree(openWith(t, threeAMinute, redisstore.Options{URL: proxy.URL(), Clock: clock.Now, Timeout: patient}))
	rounds := eachWay(func(way int) {
		limiter, mailbox := limiters[way], mailboxOf("lost")
		proxy.CutReplies(2, "evalsha")
		wantThree(t, limiter, mailbox, race(t, limiter, mailbox))
	})
	if lost := proxy.Counts().Lost; lost < rounds {
		t.Errorf("only %d replies were lost in %d rounds: the test shows too little", lost, rounds)
	}
}

// The first answers are lost, which are admissions, and nobody is told. The callers give up
// and ask again, until they are answered.
func TestRaceThroughSilence(t *testing.T) {
	t.Parallel()
	const soon = 20 * time.Millisecond // how long a caller waits for what does not come
	server := redistest.Alone(t)
	proxy := redistest.Proxy(t, server.Addr)
	clock := throttletest.NewClock(1_800_000_000_000)
	limiters := waysToThree(openWith(t, threeAMinute, redisstore.Options{URL: proxy.URL(), Clock: clock.Now, Timeout: soon}))
	witnesses := waysToThree(openWith(t, threeAMinute, redisstore.Options{URL: server.URL(), Clock: clock.Now, Timeout: patient}))
	rounds := eachWay(func(way int) {
		mailbox := mailboxOf("silent")
		proxy.DropReplies(1, "evalsha")
		wantThree(t, witnesses[way], mailbox, race(t, insistent{limiters[way]}, mailbox))
	})
	if lost := proxy.Counts().Lost; lost < rounds {
		t.Errorf("only %d replies were lost in %d rounds: the test shows too little", lost, rounds)
	}
}

// insistent is a limiter whose callers take until they are answered.
type insistent struct{ throttle.Limiter }

func (i insistent) Take(_ context.Context, mailbox string, id throttle.ID) (throttle.Verdict, error) {
	return insist(i.Limiter, mailbox, id)
}

func TestRaceThroughASlotMigration(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t)
	newcomer := servers.AddMaster()
	clock := throttletest.NewClock(1_800_000_000_000)
	for name, confirm := range map[string]int{"one copy": 0, "confirmed": 1} {
		t.Run(name, func(t *testing.T) {
			// The braces put all mailboxes into the one slot that moves.
			o := redisstore.Options{URL: servers.URL(), Prefix: "{moving}", Clock: clock.Now, Timeout: patient, Confirm: confirm}
			limiter := openWith(t, threeAMinute, o)
			asked, moved := refusals(servers, "ASK"), refusals(servers, "MOVED")
			rounds := length(500)
			for range rounds {
				raceThroughAMigration(t, servers, limiter, "{moving}")
			}
			for name, m := range threeMeters {
				for range length(20) {
					raceThroughAMigration(t, servers, limiter.Meter(name, m), "{moving}"+name+"."+m.Form()+":")
				}
			}
			asked, moved = refusals(servers, "ASK")-asked, refusals(servers, "MOVED")-moved
			if asked < rounds || moved == 0 {
				t.Errorf("in %d rounds callers were sent on %d times on the way and %d times for good: the test shows too little", rounds, asked, moved)
			}
			moveToANewcomer(t, servers, newcomer, o)
		})
	}
}

// refusals is how often the masters have answered with an error of this kind.
func refusals(servers *redistest.ClusterServers, kind string) (times int) {
	for _, master := range servers.Masters {
		times += master.Refused(kind)
	}
	return times
}

func raceThroughAMigration(t *testing.T, servers *redistest.ClusterServers, limiter throttle.Limiter, prefix string) {
	mailbox := mailboxOf("moving")
	key := prefix + mailbox
	from := servers.MasterOf(key)
	to := servers.AnotherMaster(from)
	taken := 0
	takeOne := func() {
		v, err := limiter.Take(context.Background(), mailbox, throttle.NewID())
		if err != nil {
			t.Error(err)
		}
		if v.Allowed {
			taken++
		}
	}
	admitted := race(t, limiter, mailbox,
		func() { servers.BeginMigration(key, from, to); takeOne() }, // there is a key now, here or there
		func() { moveIfThere(t, servers, key, from, to); takeOne() },
		func() { servers.FinishMigration(key, from, to) },
	)
	wantThree(t, limiter, mailbox, admitted+taken)
}

// moveToANewcomer moves the slot to a master that has none yet, and back. Until it has the
// whole of it the cluster does not name it, but for the keys that are there.
func moveToANewcomer(t *testing.T, servers *redistest.ClusterServers, newcomer *redistest.Server, o redisstore.Options) {
	store := openStore(t, o)
	store.Watch(func(cause error) { t.Errorf("an outage: %v", cause) }, func(time.Duration) {})
	limiter, err := cluster.New(store, mustPolicy("minute=9/60s"))
	if err != nil {
		t.Fatal(err)
	}
	var mailboxes []string
	admit := func(step string) {
		t.Helper()
		mailboxes = append(mailboxes, mailboxOf("new"))
		for _, mailbox := range mailboxes {
			if v, err := limiter.Take(context.Background(), mailbox, throttle.NewID()); err != nil || !v.Allowed {
				t.Errorf("%s: allowed %v, %v", step, v.Allowed, err)
			}
		}
	}
	key := o.Prefix + "any"
	from := servers.MasterOf(key)
	admit("before")
	servers.BeginMigration(key, from, newcomer)
	admit("begun")
	servers.MoveKey(o.Prefix+mailboxes[0], from, newcomer)
	admit("its keys moved")
	servers.FinishMigration(key, from, newcomer)
	admit("the whole slot moved")

	servers.BeginMigration(key, newcomer, from)
	for _, mailbox := range mailboxes {
		moveIfThere(t, servers, o.Prefix+mailbox, newcomer, from)
	}
	servers.FinishMigration(key, newcomer, from)
	for i, mailbox := range mailboxes {
		if n, err := limiter.Reset(context.Background(), mailbox); n != len(mailboxes)-i || err != nil {
			t.Errorf("mailbox %d: %d on record, %v", i, n, err)
		}
	}
}

func moveIfThere(t *testing.T, servers *redistest.ClusterServers, key string, from, to *redistest.Server) {
	t.Helper()
	if n := from.Client().Exists(context.Background(), key).Val(); n == 1 {
		servers.MoveKey(key, from, to)
	}
}

// A redis that is silent, in whatever way, costs a caller the timeout and no more.
func TestSilenceEndsAtTheTimeout(t *testing.T) {
	const timeout = 250 * time.Millisecond
	const late = timeout + 200*time.Millisecond // for a busy machine
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
	store := openStore(t, redisstore.Options{URL: proxy.URL(), Timeout: 250 * time.Millisecond})
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
	limiter = open(t, redisstore.Options{URL: proxy.URL(), Timeout: patient})
	if v := take(t, limiter, mailbox, id); !v.Allowed || v.Tiers()[2].Remaining != 9 {
		t.Errorf("taken again with the same id: allowed %v, tiers %v", v.Allowed, v.Tiers())
	}
	if released, err := limiter.Release(context.Background(), mailbox, id); !released || err != nil {
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
	deadline := time.Now().Add(20 * time.Second)
	for {
		v, err := limiter.Take(context.Background(), mailbox, throttle.NewID())
		if err == nil {
			if v.Allowed {
				t.Fatal("the failover forgot an admission that the replica had confirmed")
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not healed: %v", err)
		}
	}
	if h, err := limiter.History(context.Background(), mailbox); err != nil || len(h) != 1 || h[0].ID != id {
		t.Errorf("history %v, %v", h, err)
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

// One master that hangs takes its own mailboxes along and no others.
func TestAHungMasterStopsOnlyItsOwn(t *testing.T) {
	servers := redistest.Cluster(t)
	limiter := open(t, redisstore.Options{URL: servers.URL(), Timeout: time.Second})
	admit(t, limiter, mailboxOf("warm"))
	hung := servers.Masters[0]
	var mailboxes []string
	others := map[string]bool{}
	for range 600 {
		mailbox := mailboxOf("any")
		mailboxes = append(mailboxes, mailbox)
		others[mailbox] = servers.MasterOf("mailgate:{}"+mailbox) != hung
	}
	hung.Pause()
	defer hung.Resume()
	var asked, failed atomic.Int64
	var done sync.WaitGroup
	for caller := range 30 {
		done.Go(func() {
			for _, mailbox := range mailboxes[caller*20 : caller*20+20] {
				_, err := limiter.Take(context.Background(), mailbox, throttle.NewID())
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
