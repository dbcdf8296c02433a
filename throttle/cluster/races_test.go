package cluster_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/clock/clocktest"
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

// eachWay has the first of waysToThree, the tiers, race through so many rounds, and each of
// the others through a quarter of them.
func eachWay(most int, round func(way int)) (rounds int) {
	for way := range 1 + len(threeMeters) {
		many := most
		if way > 0 {
			many = most / 4
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
	clock := clocktest.New(1_800_000_000_000)
	limiters := waysToThree(openWith(t, threeAMinute, redisstore.Options{URL: server.URL(), Clock: clock.Now, Timeout: patient}))
	rounds := eachWay(throttletest.Length(1000), func(way int) {
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
	clock := clocktest.New(1_800_000_000_000)
	limiters := waysToThree(openWith(t, threeAMinute, redisstore.Options{URL: proxy.URL(), Clock: clock.Now, Timeout: patient}))
	rounds := eachWay(throttletest.Length(1000), func(way int) {
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
	clock := clocktest.New(1_800_000_000_000)
	limiters := waysToThree(openWith(t, threeAMinute, redisstore.Options{URL: proxy.URL(), Clock: clock.Now, Timeout: soon}))
	witnesses := waysToThree(openWith(t, threeAMinute, redisstore.Options{URL: server.URL(), Clock: clock.Now, Timeout: patient}))
	most := throttletest.Length(1000)
	if testing.Short() {
		most /= 2
	}
	rounds := eachWay(most, func(way int) {
		mailbox := mailboxOf("silent")
		proxy.DropReplies(1, "evalsha")
		wantThree(t, witnesses[way], mailbox, race(t, insistent{limiters[way], witnesses[way]}, mailbox))
	})
	admit(t, limiters[0], mailboxOf("after"))
	if lost := proxy.Counts().Lost; lost < rounds/2 { // in some rounds redis rests, and the witness alone asks it
		t.Errorf("only %d replies were lost in %d rounds: the test shows too little", lost, rounds)
	}
}

// insistent is a limiter whose callers take until they are answered. A machine can be too busy
// to answer them in time, however often they ask: then they ask a witness, who is patient.
type insistent struct {
	throttle.Limiter
	witness throttle.Limiter
}

func (i insistent) Take(ctx context.Context, mailbox string, id throttle.ID) (throttle.Verdict, error) {
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if v, err := i.Limiter.Take(ctx, mailbox, id); err == nil {
			return v, nil
		}
	}
	return i.witness.Take(ctx, mailbox, id)
}

func TestRaceThroughASlotMigration(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t)
	newcomer := servers.AddMaster()
	clock := clocktest.New(1_800_000_000_000)
	for name, confirm := range map[string]int{"one copy": 0, "confirmed": 1} {
		t.Run(name, func(t *testing.T) {
			// The braces put all mailboxes into the one slot that moves.
			o := redisstore.Options{URL: servers.URL(), Prefix: "{moving}", Clock: clock.Now, Timeout: patient, Confirm: confirm}
			limiter := openWith(t, threeAMinute, o)
			asked, moved := refusals(servers, "ASK"), refusals(servers, "MOVED")
			rounds, owner := throttletest.Length(500), servers.MasterOf("{moving}")
			for range rounds {
				owner = raceThroughAMigration(t, servers, owner, limiter, "{moving}")
			}
			for name, m := range threeMeters {
				for range throttletest.Length(20) {
					owner = raceThroughAMigration(t, servers, owner, limiter.Meter(name, m), "{moving}"+name+"."+m.Form()+":")
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

// raceThroughAMigration moves the slot from its master, and says to which.
func raceThroughAMigration(t *testing.T, servers *redistest.ClusterServers, from *redistest.Server, limiter throttle.Limiter, prefix string) (to *redistest.Server) {
	mailbox := mailboxOf("moving")
	key := prefix + mailbox
	to = servers.AnotherMaster(from)
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
	return to
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
