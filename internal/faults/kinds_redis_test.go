package faults_test

import (
	"context"
	"time"

	"github.com/mailgate/mailgate/internal/faults/judge"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
)

var (
	// noHistory are the answers of a node that cannot decide, or not about a key.
	noHistory = []string{"store-unavailable", "delivery-unknown"}

	away = judge.Terms{Alone: true, Fails: noHistory}
	// hangs is for a store that does not answer. Nodes continue alone after four timeouts, which
	// are 1 s in a campaign; one more second is for a machine that is busy.
	hangs = judge.Terms{Alone: true, Unknown: 5_000, Fails: noHistory}
	// late is for replies that are lost now and then: no node continues alone.
	late    = judge.Terms{Fails: noHistory}
	quiet   = judge.Terms{Quiet: true}
	forgets = judge.Terms{Alone: true, Forgets: true, Unknown: 5_000, Fails: noHistory}
	refuses = judge.Terms{Refuses: true, Fails: noHistory}
	// setClocks is that of a clock on which keys in flight may run out.
	setClocks = judge.Terms{Quiet: true, ClockSet: true}
	confirm   = []string{"MAILGATE_REDIS_CONFIRM=1"}
	confirm2  = []string{"MAILGATE_REDIS_CONFIRM=2"}
	refuse    = []string{"MAILGATE_ON_STORE_OUTAGE=refuse"}
)

// redisKinds are the faults of Redis and of the way there.
var redisKinds = []*kind{
	{name: "cluster-promotion", store: onCluster, terms: forgets, brief: true, effect: promotes, inject: (*rig).killMaster},
	{name: "cluster-stopped", store: onCluster, terms: forgets, effect: degrades, inject: (*rig).pauseMaster},
	{name: "cluster-slot-moves", store: onCluster, terms: quiet, brief: true, effect: errs(moving...), inject: (*rig).moveSlots},
	{name: "sentinel-failover", store: onSentinel, terms: forgets, brief: true, effect: promotes, inject: (*rig).failOver},
	{name: "redis-replica-stalled", store: onSentinel, terms: quiet, effect: lagsBehind, inject: (*rig).pauseReplica},
	{name: "redis-confirm-stalled", store: onSentinel, environ: confirm, terms: refuses, effect: noStore, inject: (*rig).pauseReplica},
	{name: "redis-confirm-split", store: onTwoReplicas, environ: confirm2, terms: judge.Terms{Unknown: 5_000, Fails: noHistory}, brief: true, effect: promotes, inject: (*rig).splitMaster},
	{name: "redis-killed", store: onRedis, terms: away, effect: degrades, inject: (*rig).killRedis},
	{name: "redis-killed-refuse", store: onRedis, environ: refuse, terms: refuses, effect: noStore, inject: (*rig).killRedis},
	{name: "redis-stopped", store: onRedis, terms: hangs, effect: degrades, inject: (*rig).pauseRedis},
	{name: "redis-partition", store: behindProxy, terms: hangs, effect: degrades, inject: proxied((*redistest.FaultyProxy).Swallow)},
	{name: "redis-refused", store: behindProxy, terms: away, effect: degrades, inject: proxied((*redistest.FaultyProxy).Refuse)},
	{name: "redis-reply-cut", store: behindProxy, terms: late, effect: losesReplies,
		inject: proxied(func(p *redistest.FaultyProxy) { p.CutReplies(5, aRecord) })},
	{name: "redis-reply-dropped", store: behindProxy, terms: late, effect: losesReplies,
		inject: proxied(func(p *redistest.FaultyProxy) { p.DropReplies(5, aRecord) })},
	{name: "redis-script-flush", store: onRedis, terms: quiet, effect: errs("NOSCRIPT"), inject: (*rig).flushScripts},
	{name: "redis-full", store: onRedis, terms: away, effect: degrades, inject: configured("maxmemory")},
	{name: "redis-unreplicated", store: onRedis, terms: away, effect: degrades, inject: configured("min-replicas-to-write")},
	{name: "redis-clock", store: withClock, terms: setClocks, effect: clockOff, inject: (*rig).setRedisClock},
}

// aRecord is part of the commands about records, which have a hash tag in their keys. Probes do not.
const aRecord = ":{"

// moving are the answers that tell callers of a slot that it is elsewhere.
var moving = []string{"MOVED", "ASK"}

func (s *rig) killRedis() func() {
	s.alone.Kill()
	return s.alone.Restart
}

func (s *rig) pauseRedis() func() {
	s.alone.Pause()
	return s.alone.Resume
}

func (s *rig) pauseReplica() func() {
	s.sentinel.Replicas[0].Pause()
	return s.sentinel.Replicas[0].Resume
}

func (s *rig) failOver() func() {
	s.sentinel.Failover()
	return func() {
		s.sentinel.Replicas[0].Restart()
		s.sentinel.AwaitReplicas()
	}
}

// splitMaster has the master replaced while it answers again: a replica follows it that could confirm
// what the new master never had.
func (s *rig) splitMaster() func() {
	old := s.sentinel.Master
	old.Pause()
	s.sentinel.AwaitDown()
	old.Resume()
	s.sentinel.AwaitPromotion()
	return s.sentinel.AwaitReplicas
}

func proxied(fault func(*redistest.FaultyProxy)) func(*rig) func() {
	return func(s *rig) func() {
		fault(s.proxy)
		return s.proxy.Pass
	}
}

func (s *rig) flushScripts() func() {
	s.tell("SCRIPT", "FLUSH")
	return noRepair
}

// configured sets a setting of the server to 1, which makes it refuse writes, and back to 0.
func configured(setting string) func(*rig) func() {
	return func(s *rig) func() {
		s.tell("CONFIG", "SET", setting, "1")
		return func() { s.tell("CONFIG", "SET", setting, "0") }
	}
}

// tell has the server carry out a command.
func (s *rig) tell(command ...any) {
	if err := s.alone.Client().Do(context.Background(), command...).Err(); err != nil {
		s.t.Fatalf("%v: %v", command, err)
	}
}

// withClock is a single server whose clock can be set.
func withClock(s *rig) []string {
	s.alone = redistest.Alone(s.t)
	s.setRedis = s.alone.WithClock()
	return inRedis(s.alone.URL())
}

// setRedisClock sets the server's clock 90 s ahead or back.
func (s *rig) setRedisClock() func() {
	s.setRedis([]time.Duration{90 * time.Second, -90 * time.Second}[s.rng.IntN(2)])
	return func() { s.setRedis(0) }
}

// killMaster kills a master of the cluster and waits until its replica is the master.
func (s *rig) killMaster() func() {
	victim := s.cluster.Masters[s.rng.IntN(len(s.cluster.Masters))]
	victim.Kill()
	s.cluster.AwaitReady()
	return func() {
		victim.Restart()
		s.cluster.AwaitReady()
	}
}

// pauseMaster stops a master for so long that its replica may take over.
func (s *rig) pauseMaster() func() {
	victim := s.cluster.Masters[s.rng.IntN(len(s.cluster.Masters))]
	victim.Pause()
	return func() {
		victim.Resume()
		s.cluster.AwaitReady()
	}
}

// moveSlots moves slots that have keys from one master to another, until some callers have met
// one that is moving: a slot has few keys, and is not always asked for just then. Those of hot
// mailboxes come first, since nodes ask for them at least once a second.
func (s *rig) moveSlots() func() {
	from, to := s.cluster.Masters[0], s.cluster.Masters[1]
	before := s.refused(moving...)
	for moved := 0; moved < 6 || moved < 100 && s.refused(moving...) == before; moved++ {
		keys := must.Get(from.Client().Keys(context.Background(), "*{"+s.load.token+"h*").Result())(s.t)
		if len(keys) == 0 {
			keys = []string{must.Get(from.Client().RandomKey(context.Background()).Result())(s.t)}
		}
		key := keys[0]
		s.cluster.BeginMigration(key, from, to)
		time.Sleep(100 * time.Millisecond) // so that callers meet a slot that is moving
		s.cluster.MoveKeys(key, from, to)
		time.Sleep(300 * time.Millisecond) // and a key that has moved
		s.cluster.FinishMigration(key, from, to)
	}
	return noRepair
}
