package mailer

import (
	"sync"
	"testing"
	"time"
)

// TestBreakerRule plays timed steps against the rule alone.
func TestBreakerRule(t *testing.T) {
	rule := Breaker{Failures: 2, Cooldown: time.Second, MaxCooldown: 3 * time.Second}
	type step struct {
		at   int64
		ask  bool    // ask, and expect:
		wait int64   //   no, for so long; 0: yes
		tell verdict // or settle the oldest pass not settled yet
	}
	ask := func(at, wait int64) step { return step{at: at, ask: true, wait: wait} }
	tell := func(at int64, v verdict) step { return step{at: at, tell: v} }
	for name, steps := range map[string][]step{
		"failures in a row open": {
			ask(0, 0), tell(0, relayFailed), ask(10, 0), tell(20, relayFailed), ask(20, 1000), ask(1019, 1),
		},
		"an answer starts the count anew": {
			ask(0, 0), tell(0, relayFailed), ask(0, 0), tell(0, relayAnswered), ask(0, 0), tell(0, relayFailed), ask(0, 0),
		},
		"what was not judged counts neither way": {
			ask(0, 0), tell(0, relayFailed), ask(0, 0), tell(0, relayNotJudged), ask(0, 0), tell(0, relayFailed), ask(0, 1000),
		},
		"a recipient's doing counts neither way": {
			ask(0, 0), tell(0, relayFailed), ask(0, 0), tell(0, relayReached), ask(0, 0), tell(0, relayFailed), ask(0, 1000),
		},
		"a recipient's doing spoils no trial": {
			ask(0, 0), tell(0, relayFailed), ask(0, 0), tell(0, relayFailed),
			ask(1000, 0), tell(1100, relayReached), ask(1100, 0), ask(1100, 0),
		},
		"one trial at a time": {
			ask(0, 0), tell(0, relayFailed), ask(0, 0), tell(0, relayFailed),
			ask(1000, 0), ask(1000, afterTrial), ask(5000, afterTrial),
		},
		"a good trial closes": {
			ask(0, 0), tell(0, relayFailed), ask(0, 0), tell(0, relayFailed),
			ask(1000, 0), tell(1100, relayAnswered), ask(1100, 0), ask(1100, 0), tell(1100, relayFailed), ask(1100, 0),
		},
		"bad trials rest twice as long, up to the most": {
			ask(0, 0), tell(0, relayFailed), ask(0, 0), tell(0, relayFailed),
			ask(1000, 0), tell(1000, relayFailed), ask(1000, 2000),
			ask(3000, 0), tell(3000, relayFailed), ask(3000, 3000),
			ask(6000, 0), tell(6000, relayFailed), ask(6000, 3000),
		},
		"a trial given up leaves room for another": {
			ask(0, 0), tell(0, relayFailed), ask(0, 0), tell(0, relayFailed),
			ask(1000, 0), tell(1001, relayNotJudged), ask(1001, 0),
		},
		"stragglers neither close nor prolong": {
			ask(0, 0), ask(0, 0), ask(0, 0), ask(0, 0),
			tell(0, relayFailed), tell(0, relayFailed), tell(900, relayFailed), tell(900, relayAnswered), ask(900, 100),
		},
		"a clock stepping back prolongs no rest": {
			ask(1e9, 0), tell(1e9, relayFailed), ask(1e9, 0), tell(1e9, relayFailed), ask(0, 1000), ask(1000, 0),
		},
	} {
		t.Run(name, func(t *testing.T) {
			var state circuitState
			var passes []pass
			for i, s := range steps {
				if !s.ask {
					state = rule.settle(state, s.at, passes[0], s.tell)
					passes = passes[1:]
					continue
				}
				var p pass
				state, p = rule.ask(state, s.at)
				if p.wait != s.wait || p.ok != (s.wait == 0) {
					t.Fatalf("step %d at %d: %+v, want wait %d", i, s.at, p, s.wait)
				}
				if p.ok {
					passes = append(passes, p)
				}
			}
		})
	}
}

// TestOneTrialUnderARace: of many at once, one is let through.
func TestOneTrialUnderARace(t *testing.T) {
	now := int64(0)
	c := &circuit{
		rule: Breaker{Failures: 1}.withDefaults(), now: func() int64 { return now }, changed: func(bool) {},
	}
	c.settle(c.ask(), relayFailed)
	now += 5000
	var mu sync.Mutex
	through := 0
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			if c.ask().ok {
				mu.Lock()
				through++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if through != 1 {
		t.Errorf("%d trials at once, want 1", through)
	}
}
