package faults_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mailgate/mailgate/faults/judge"
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
	refuse    = []string{"MAILGATE_ON_STORE_OUTAGE=refuse"}
)

// redisKinds are the faults of Redis and of the way there.
var redisKinds = []*kind{
	{name: "redis-killed", store: onRedis, terms: away, effect: degrades,
		inject: func(s *rig) { s.alone.Kill() }, repair: func(s *rig) { s.alone.Restart() }},
	{name: "redis-stopped", store: onRedis, terms: hangs, hold: longStop, effect: degrades,
		inject: func(s *rig) { s.alone.Pause() }, repair: func(s *rig) { s.alone.Resume() }},
	{name: "redis-killed-disks", store: onRedis, disks: true, terms: away, effect: degrades,
		inject: func(s *rig) { s.alone.Kill() }, repair: func(s *rig) { s.alone.Restart() }},
	{name: "redis-killed-refuse", store: onRedis, environ: refuse, terms: refuses, effect: noStore,
		inject: func(s *rig) { s.alone.Kill() }, repair: func(s *rig) { s.alone.Restart() }},
	{name: "redis-partition", store: behindProxy, terms: hangs, effect: degrades,
		inject: func(s *rig) { s.proxy.Swallow() }, repair: func(s *rig) { s.proxy.Pass() }},
	{name: "redis-refused", store: behindProxy, terms: away, effect: degrades,
		inject: func(s *rig) { s.proxy.Refuse() }, repair: func(s *rig) { s.proxy.Pass() }},
	{name: "redis-reply-cut", store: behindProxy, terms: late, effect: losesReplies,
		inject: func(s *rig) { s.proxy.CutReplies(5, "evalsha") }, repair: func(s *rig) { s.proxy.Pass() }},
	{name: "redis-reply-dropped", store: behindProxy, terms: late, effect: losesReplies,
		inject: func(s *rig) { s.proxy.DropReplies(5, "evalsha") }, repair: func(s *rig) { s.proxy.Pass() }},
	{name: "redis-script-flush", store: onRedis, terms: quiet, effect: errs("NOSCRIPT"),
		inject: func(s *rig) { s.tell(s.alone, "SCRIPT", "FLUSH") }, repair: func(*rig) {}},
	{name: "redis-full", store: onRedis, terms: away, effect: degrades,
		inject: func(s *rig) { s.tell(s.alone, "CONFIG", "SET", "maxmemory", "1") },
		repair: func(s *rig) { s.tell(s.alone, "CONFIG", "SET", "maxmemory", "0") }},
	{name: "redis-unreplicated", store: onRedis, terms: away, effect: degrades,
		inject: func(s *rig) { s.tell(s.alone, "CONFIG", "SET", "min-replicas-to-write", "1") },
		repair: func(s *rig) { s.tell(s.alone, "CONFIG", "SET", "min-replicas-to-write", "0") }},
	{name: "redis-auth", store: withPassword, terms: away, effect: degrades,
		inject: (*rig).changePassword, repair: (*rig).repairByUndo},
	{name: "redis-clock", store: withClock, terms: setClocks, effect: clockOff,
		inject: (*rig).setRedisClock, repair: (*rig).repairByUndo},
	{name: "redis-replica-stalled", store: onSentinel, terms: quiet, effect: lagsBehind,
		inject: func(s *rig) { s.sentinel.Replica.Pause() }, repair: func(s *rig) { s.sentinel.Replica.Resume() }},
	{name: "redis-confirm-stalled", store: onSentinel, environ: confirm, terms: refuses, effect: noStore,
		inject: func(s *rig) { s.sentinel.Replica.Pause() }, repair: func(s *rig) { s.sentinel.Replica.Resume() }},
	{name: "sentinel-failover", store: onSentinel, terms: forgets, length: 1, hold: noTime, effect: promotes,
		inject: func(s *rig) { s.sentinel.Failover() }, repair: func(s *rig) { s.sentinel.Replica.Restart(); s.sentinel.AwaitReplica() }},
	{name: "cluster-promotion", store: onCluster, terms: forgets, length: 2, hold: noTime, effect: promotes,
		inject: (*rig).killMaster, repair: (*rig).repairByUndo},
	{name: "cluster-stopped", store: onCluster, terms: forgets, length: 2, hold: longStop, effect: degrades,
		inject: (*rig).pauseMaster, repair: (*rig).repairByUndo},
	{name: "cluster-slot-moves", store: onCluster, terms: quiet, length: 2, hold: noTime, effect: errs(moving...),
		inject: (*rig).moveSlots, repair: func(*rig) {}},
}

// moving are the answers that tell callers of a slot that it is elsewhere.
var moving = []string{"MOVED", "ASK"}

// noTime is for faults that are over once injected.
func noTime(shape) time.Duration { return 0 }

// longStop is for a server that is stopped for long.
func longStop(sh shape) time.Duration {
	if sh.full {
		return 20 * time.Second
	}
	return sh.hold
}

// tell has a server carry out a command.
func (s *rig) tell(server *redistest.Server, command ...any) {
	s.t.Helper()
	if err := server.Client().Do(context.Background(), command...).Err(); err != nil {
		s.t.Fatalf("%v: %v", command, err)
	}
}

// withPassword is a single server that asks for a password.
func withPassword(s *rig) []string {
	s.alone = redistest.Alone(s.t, "requirepass Hush-before")
	return inRedis(s.alone.URL())
}

// withClock is a single server whose clock can be set.
func withClock(s *rig) []string {
	s.alone, s.setRedis = redistest.WithClock(s.t)
	return inRedis(s.alone.URL())
}

// setRedisClock sets the server's clock 90 s ahead or back.
func (s *rig) setRedisClock() {
	s.setRedis([]time.Duration{90 * time.Second, -90 * time.Second}[s.rng.IntN(2)])
	s.undo = func() { s.setRedis(0) }
}

// changePassword has the server ask for another password, also on open connections.
func (s *rig) changePassword() {
	ctx := context.Background()
	connection := s.alone.Client().Conn() // its password is still the right one
	change := func(to string) {
		if err := connection.ConfigSet(ctx, "requirepass", to).Err(); err != nil {
			s.t.Error(err)
		}
		if err := connection.Do(ctx, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err(); err != nil {
			s.t.Error(err)
		}
	}
	change("Hush-after")
	s.undo = func() {
		change("Hush-before")
		connection.Close()
	}
}

// killMaster kills a master of the cluster and waits until its replica is the master.
func (s *rig) killMaster() {
	victim := s.cluster.Masters[s.rng.IntN(len(s.cluster.Masters))]
	victim.Kill()
	s.cluster.AwaitReady()
	s.undo = func() {
		victim.Restart()
		s.cluster.AwaitReady()
	}
}

// pauseMaster has a master rig still, for so long that its replica may take over.
func (s *rig) pauseMaster() {
	victim := s.cluster.Masters[s.rng.IntN(len(s.cluster.Masters))]
	victim.Pause()
	s.undo = func() {
		victim.Resume()
		s.cluster.AwaitReady()
	}
}

// moveSlots moves slots that have keys from one master to another, until some callers have met
// one that is moving: a slot has few keys, and is not always asked for just then.
func (s *rig) moveSlots() {
	from, to := s.cluster.Masters[0], s.cluster.Masters[1]
	ctx := context.Background()
	before := s.refused(moving...)
	for moved := 0; moved < 6 || moved < 100 && s.refused(moving...) == before; moved++ {
		key, err := from.Client().RandomKey(ctx).Result()
		if err != nil {
			s.t.Fatal(err)
		}
		s.moveSlot(ctx, key, from, to)
	}
}

func (s *rig) moveSlot(ctx context.Context, key string, from, to *redistest.Server) {
	slot := int(from.Client().ClusterKeySlot(ctx, key).Val())
	s.cluster.BeginMigration(key, from, to)
	time.Sleep(100 * time.Millisecond) // so that callers meet a slot that is moving
	for {
		keys, err := from.Client().ClusterGetKeysInSlot(ctx, slot, 100).Result()
		if err != nil {
			s.t.Fatal(err)
		}
		if len(keys) == 0 {
			break
		}
		// MoveKey wants the key to be there, and one may expire or be given back meanwhile.
		s.migrate(ctx, keys, from, to)
	}
	s.cluster.FinishMigration(key, from, to)
}

func (s *rig) migrate(ctx context.Context, keys []string, from, to *redistest.Server) {
	host, port, err := net.SplitHostPort(to.Addr)
	if err != nil {
		s.t.Fatal(err)
	}
	command := []any{"MIGRATE", host, port, "", 0, 5000, "KEYS"}
	for _, key := range keys {
		command = append(command, key)
	}
	if err := from.Client().Do(ctx, command...).Err(); err != nil && err != redis.Nil {
		s.t.Fatal(fmt.Errorf("moving keys: %w", err))
	}
}
