package cluster_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// call is one call of a limiter, and outcome its answer.
type call struct {
	kind string // take, peek, release or reset
	key  string
	a    throttle.Admission
}

type outcome struct {
	lost    bool // it is not known whether the call had an effect
	allowed bool // of a release: something was released
	count   int  // the sends on record after it; of a reset: before it
}

// tier is long enough that no send leaves it during a test, so that time does not matter.
const (
	tier      = "hour=3/1h"
	tierLimit = 3
)

// model is a limiter as a set of ids on record, here a text of sorted ids with spaces.
var model = porcupine.NondeterministicModel{
	Init: func() []any { return []any{""} },
	Step: func(state, input, output any) []any {
		ids, in, out := strings.Fields(state.(string)), input.(call), output.(outcome)
		next, answer := step(ids, in)
		after := strings.Join(next, " ")
		switch {
		case out.lost:
			return []any{state, after}
		case answer != out:
			return nil
		}
		return []any{after}
	},
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		byKey := map[string][]porcupine.Operation{}
		for _, o := range history {
			key := o.Input.(call).key
			byKey[key] = append(byKey[key], o)
		}
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
}

// step is what a call does to the ids on record.
func step(ids []string, in call) ([]string, outcome) {
	id := string(in.a.ID[:])
	found := slices.Contains(ids, id)
	switch in.kind {
	case "take":
		if !found && len(ids) < tierLimit {
			found, ids = true, slices.Sorted(slices.Values(append(slices.Clone(ids), id)))
		}
		return ids, outcome{allowed: found, count: len(ids)}
	case "peek":
		return ids, outcome{allowed: len(ids) < tierLimit, count: len(ids)}
	case "release":
		ids = slices.DeleteFunc(slices.Clone(ids), func(other string) bool { return other == id })
		return ids, outcome{allowed: found}
	}
	return nil, outcome{count: len(ids)}
}

// make calls the limiter. It reports false if the call had certainly no effect and no answer.
func (in call) make(l *throttle.Limiter) (out outcome, made bool) {
	var v throttle.Verdict
	var err error
	switch in.kind {
	case "take":
		v, err = l.TakeID(ctx, in.key, in.a.ID)
	case "peek":
		v, err = l.Peek(ctx, in.key)
	case "release":
		v.Allowed, err = l.Release(ctx, in.key, in.a)
	case "reset":
		v.Sent, err = l.Reset(ctx, in.key)
	}
	return outcome{err != nil, v.Allowed && err == nil, v.Sent}, !errors.Is(err, throttle.ErrUnchanged)
}

// Three nodes take, peek, release and reset a few keys at once, while replies are lost and late, and
// scripts flushed. There must be an order in which a limiter that does one call after the other
// gives the same answers, and each call comes between its beginning and its end.
func TestCalls_ThreeNodesUnderFaults_AreLinearizable(t *testing.T) {
	linearizable(t, 0, func(l *throttle.Limiter) *throttle.Limiter { return l })
}

// With a memory of refusals only a refusal may come up to a second late in that order, but after what was released or
// reset through its node before. What is admitted is as without.
func TestCalls_ThreeNodesThatRemember_RefuseASecondLateAtMost(t *testing.T) {
	t.Parallel()
	refusals := []*cluster.Memory{}
	linearizable(t, time.Second, func(l *throttle.Limiter) *throttle.Limiter {
		m := cluster.NewMemory(1 << 20)
		refusals = append(refusals, m)
		return m.Limiter(l)
	})
	for _, m := range refusals {
		if m.Refusals() == 0 {
			t.Error("a node remembered nothing")
		}
	}
}

func linearizable(t *testing.T, late time.Duration, node func(*throttle.Limiter) *throttle.Limiter) {
	server := redistest.Alone(t)
	var proxies []*redistest.FaultyProxy
	var nodes []*throttle.Limiter
	for range 3 {
		proxy := redistest.Proxy(t, server.Addr)
		proxies = append(proxies, proxy)
		nodes = append(nodes, node(limiter(t, open(t, redisx.Options{URL: proxy.URL(), Timeout: patient}), throttletest.Policy(t, tier))))
	}
	var pausing sync.Mutex
	for seed := range uint64(throttletest.Length(20, 500)) {
		history := play(t, nodes, late, seed, func(random *rand.Rand) {
			switch random.IntN(5) {
			case 0:
				_ = server.Client().ScriptFlush(ctx).Err()
			case 1:
				pausing.Lock()
				defer pausing.Unlock()
				server.Pause()
				time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
				server.Resume()
			default:
				proxies[random.IntN(len(proxies))].CutReplies(1, "evalsha")
			}
		})
		lost := 0
		for _, o := range history {
			if o.Output.(outcome).lost {
				lost++
			}
		}
		t.Logf("seed %d: %d calls, of which %d were lost", seed, len(history), lost)
		if got := porcupine.CheckOperationsTimeout(model.ToModel(), history, time.Minute); got != porcupine.Ok {
			t.Fatalf("seed %d: %s: %v", seed, got, history)
		}
	}
}

// play has four callers of each node make calls at random, and returns what was called and answered. A refusal may be
// from so much earlier; of those, which may come anywhere in it, an eighth is returned, as the rest would take hours to order.
func play(t *testing.T, nodes []*throttle.Limiter, late time.Duration, seed uint64, disturb func(*rand.Rand)) (history []porcupine.Operation) {
	t.Helper()
	const callers, calls = 12, 40
	var mu sync.Mutex
	taken := map[string][]throttle.Admission{} // by key, to be released or taken again
	changed := map[string]int64{}              // by node and key: when the last release or reset returned
	began := time.Now()
	var playing sync.WaitGroup
	for caller := range callers {
		random := rand.New(rand.NewPCG(seed, uint64(caller)))
		playing.Go(func() {
			for range calls {
				if random.IntN(60) == 0 {
					disturb(random)
				}
				in := call{kind: []string{"take", "take", "take", "take", "peek", "release", "release", "reset"}[random.IntN(8)]}
				in.key, in.a = fmt.Sprint("seed", seed, "key", random.IntN(4)), throttle.Admission{ID: throttle.NewID()}
				mu.Lock()
				if known := taken[in.key]; len(known) > 0 && (in.kind == "release" || random.IntN(4) == 0) {
					in.a = known[random.IntN(len(known))]
				}
				from, at := time.Since(began).Nanoseconds(), fmt.Sprint(caller%len(nodes), in.key)
				earliest := max(from-late.Nanoseconds(), changed[at])
				mu.Unlock()
				out, made := in.make(nodes[caller%len(nodes)])
				to := time.Since(began).Nanoseconds()
				if out.lost {
					to = math.MaxInt64 // it may have its effect at any time
				}
				if (in.kind == "take" || in.kind == "peek") && !out.lost && !out.allowed {
					from = earliest
				}
				mu.Lock()
				if (in.kind == "release" || in.kind == "reset") && !out.lost {
					changed[at] = max(changed[at], to)
				}
				if made && (late == 0 || out.lost || out.allowed || in.kind == "release" || in.kind == "reset" || random.IntN(8) == 0) {
					history = append(history, porcupine.Operation{ClientId: caller, Input: in, Output: out, Call: from, Return: to})
				}
				if in.kind == "take" {
					taken[in.key] = append(taken[in.key], in.a)
				}
				mu.Unlock()
			}
		})
	}
	playing.Wait()
	return history
}
