//go:build !race

package standby

import (
	"cmp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// choices are those of one run, and the number that each was from.
type choices struct {
	made, of []int
	next     int
}

func (c *choices) choose(n int) int {
	if c.next == len(c.made) {
		c.made, c.of = append(c.made, 0), append(c.of, n)
	}
	c.next++
	return c.made[c.next-1]
}

// another changes the last choice that has a further option, and reports whether there was one.
func (c *choices) another() bool {
	for c.next = 0; len(c.made) > 0; {
		last := len(c.made) - 1
		if c.made[last]++; c.made[last] < c.of[last] {
			return true
		}
		c.made, c.of = c.made[:last], c.of[:last]
	}
	return false
}

// modelPairs are a rule and its override by each algorithm.
func modelPairs(t testing.TB) map[string][2]throttle.Algorithm {
	tier := func(limit int) throttle.Tier { return throttle.Tier{Name: "minute", Limit: limit, Window: time.Minute} }
	pair := func(by func(limit, room int) (throttle.Algorithm, error)) [2]throttle.Algorithm {
		return [2]throttle.Algorithm{must.Get(by(6, 1))(t), must.Get(by(12, 2))(t)}
	}
	return map[string][2]throttle.Algorithm{
		"sliding log":    {throttletest.Policy(t, "short=2/3s"), throttletest.Policy(t, "long=4/60s")},
		"fixed window":   pair(func(limit, _ int) (throttle.Algorithm, error) { return throttle.NewFixedWindow(tier(limit)) }),
		"token bucket":   pair(func(limit, room int) (throttle.Algorithm, error) { return throttle.NewTokenBucket(tier(limit), room) }),
		"leaky bucket":   pair(func(limit, room int) (throttle.Algorithm, error) { return throttle.NewLeakyBucket(tier(limit), room-1) }),
		"sliding window": pair(func(limit, _ int) (throttle.Algorithm, error) { return throttle.NewSlidingWindow(tier(limit), 60) }),
	}
}

// modelScripts are the steps of a node: the first is by Redis.
func modelScripts() (all [][3]modelStep) {
	for first := range giveBack {
		for second := range giveBackNewest {
			for third := range modelSteps {
				if second < giveBack || third < giveBack { // else there is nothing to give back
					all = append(all, [3]modelStep{first, second, third})
				}
			}
		}
	}
	return all
}

// walkAll walks pairs of scripts, and returns the first fault. The machine's clock stands still.
func walkAll(t *testing.T, pair [2]throttle.Algorithm, spoil func([]operation, throttle.Algorithm)) (runs int, fault string) {
	synctest.Test(t, func(t *testing.T) { runs, fault = walkScripts(t, pair, spoil) })
	return runs, fault
}

func walkScripts(t testing.TB, pair [2]throttle.Algorithm, spoil func([]operation, throttle.Algorithm)) (runs int, fault string) {
	scripts := modelScripts()
	for i, a := range scripts {
		for _, b := range scripts[i:] {
			n, fault := walkModel(t, modelCase{pair[0], pair[1], [2][3]modelStep{a, b}, spoil})
			if runs += n; fault != "" {
				return runs, fault
			}
		}
	}
	return runs, ""
}

func TestModel_AllRunsOfAnOutage_RedisHasWhatTheNodesDid(t *testing.T) {
	for name, pair := range modelPairs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs, fault := walkAll(t, pair, nil)
			if fault != "" {
				t.Error(fault)
			}
			t.Logf("%d runs", runs)
		})
	}
}

// The model finds the faults that it is for. The two windows count the same in every order, and by either limit.
func TestModel_JournalIsSpoiled_Found(t *testing.T) {
	pairs := modelPairs(t)
	for name, c := range map[string]struct {
		spoil func(all []operation, rule throttle.Algorithm)
		seen  []string
	}{
		"another order": {func(all []operation, _ throttle.Algorithm) { slices.Reverse(all) },
			[]string{"sliding log", "token bucket", "leaky bucket"}},
		"releases last": {func(all []operation, _ throttle.Algorithm) {
			slices.SortStableFunc(all, func(a, b operation) int { return cmp.Compare(a.kind, b.kind) })
		}, []string{"token bucket", "leaky bucket"}},
		"the rule's algorithm": {func(all []operation, rule throttle.Algorithm) {
			for i := range all {
				all[i].by = textOf(rule)
			}
		}, []string{"sliding log", "token bucket", "leaky bucket"}},
	} {
		for _, algorithm := range c.seen {
			if runs, fault := walkAll(t, pairs[algorithm], c.spoil); fault == "" {
				t.Errorf("%s, %s: no fault in %d runs", name, algorithm, runs)
			}
		}
	}
}
