package breaker

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestRule plays timed steps against the rule alone.
func TestRule(t *testing.T) {
	rule := Rule{Failures: 2, Cooldown: time.Second, MaxCooldown: 3 * time.Second}
	type step struct {
		at   int64
		ask  bool    // ask, and expect:
		wait int64   //   no, for so long; 0: yes
		tell Outcome // or settle the oldest pass not settled yet
	}
	ask := func(at, wait int64) step { return step{at: at, ask: true, wait: wait} }
	tell := func(at int64, v Outcome) step { return step{at: at, tell: v} }
	for name, steps := range map[string][]step{
		"failures in a row open": {
			ask(0, 0), tell(0, Failed), ask(10, 0), tell(20, Failed), ask(20, 1000), ask(1019, 1),
		},
		"an answer starts the count anew": {
			ask(0, 0), tell(0, Failed), ask(0, 0), tell(0, Answered), ask(0, 0), tell(0, Failed), ask(0, 0),
		},
		"what was not judged counts neither way": {
			ask(0, 0), tell(0, Failed), ask(0, 0), tell(0, NotJudged), ask(0, 0), tell(0, Failed), ask(0, 1000),
		},
		"a recipient's doing counts neither way": {
			ask(0, 0), tell(0, Failed), ask(0, 0), tell(0, Reached), ask(0, 0), tell(0, Failed), ask(0, 1000),
		},
		"a recipient's doing spoils no trial": {
			ask(0, 0), tell(0, Failed), ask(0, 0), tell(0, Failed),
			ask(1000, 0), tell(1100, Reached), ask(1100, 0), ask(1100, 0),
		},
		"one trial at a time": {
			ask(0, 0), tell(0, Failed), ask(0, 0), tell(0, Failed),
			ask(1000, 0), ask(1000, AfterTrial), ask(5000, AfterTrial),
		},
		"a good trial closes": {
			ask(0, 0), tell(0, Failed), ask(0, 0), tell(0, Failed),
			ask(1000, 0), tell(1100, Answered), ask(1100, 0), ask(1100, 0), tell(1100, Failed), ask(1100, 0),
		},
		"bad trials rest twice as long, up to the most": {
			ask(0, 0), tell(0, Failed), ask(0, 0), tell(0, Failed),
			ask(1000, 0), tell(1000, Failed), ask(1000, 2000),
			ask(3000, 0), tell(3000, Failed), ask(3000, 3000),
			ask(6000, 0), tell(6000, Failed), ask(6000, 3000),
		},
		"a trial given up leaves room for another": {
			ask(0, 0), tell(0, Failed), ask(0, 0), tell(0, Failed),
			ask(1000, 0), tell(1001, NotJudged), ask(1001, 0),
		},
		"stragglers neither close nor prolong": {
			ask(0, 0), ask(0, 0), ask(0, 0), ask(0, 0),
			tell(0, Failed), tell(0, Failed), tell(900, Failed), tell(900, Answered), ask(900, 100),
		},
		"a straggler is not the trial": {
			ask(0, 0), ask(0, 0), ask(0, 0), tell(0, Failed), tell(0, Failed),
			ask(1000, 0), tell(1001, Answered), ask(1001, AfterTrial), tell(1002, Answered), ask(1002, 0),
		},
		"a clock stepping back prolongs no rest": {
			ask(1e9, 0), tell(1e9, Failed), ask(1e9, 0), tell(1e9, Failed), ask(0, 1000), ask(1000, 0),
		},
	} {
		t.Run(name, func(t *testing.T) {
			var state State
			var passes []Pass
			for i, s := range steps {
				if !s.ask {
					state = rule.Settle(state, s.at, passes[0], s.tell)
					passes = passes[1:]
					continue
				}
				var p Pass
				state, p = rule.Ask(state, s.at)
				if p.Wait != s.wait || p.OK != (s.wait == 0) {
					t.Fatalf("step %d at %d: %+v, want wait %d", i, s.at, p, s.wait)
				}
				if p.OK {
					passes = append(passes, p)
				}
			}
		})
	}
}

// TestOneTrialUnderARace: of many at once, one is let through.
func TestOneTrialUnderARace(t *testing.T) {
	now := int64(0)
	rule := Rule{Failures: 1, Cooldown: 5 * time.Second, MaxCooldown: time.Minute}
	c := NewCircuit(rule, func() int64 { return now }, func(bool) {})
	c.Settle(c.Ask(), Failed)
	now += 5000
	var mu sync.Mutex
	through := 0
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			if c.Ask().OK {
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

// TestCircuitTellsOfChanges: once when it opens and once when it closes.
func TestCircuitTellsOfChanges(t *testing.T) {
	now := int64(0)
	var told []bool
	rule := Rule{Failures: 2, Cooldown: time.Second, MaxCooldown: time.Second}
	c := NewCircuit(rule, func() int64 { return now }, func(open bool) { told = append(told, open) })
	for range 3 {
		c.Settle(Pass{OK: true}, Failed)
	}
	if rest := c.Rest(); rest != 1000 {
		t.Errorf("rests for %d ms", rest)
	}
	now = 1000
	if rest := c.Rest(); rest != 0 || !c.Open() {
		t.Errorf("when a trial is due it still rests for %d ms; open: %v", rest, c.Open())
	}
	c.Settle(c.Ask(), Answered)
	if c.Open() {
		t.Error("it is open after a trial that was answered")
	}
	if len(told) != 2 || !told[0] || told[1] {
		t.Errorf("told %v, want that it opened and closed", told)
	}
}

// TestNoFailureIsLostInARace: so many at once as it takes to open it do, and it is told
// once.
func TestNoFailureIsLostInARace(t *testing.T) {
	var told atomic.Int32
	rule := Rule{Failures: 32, Cooldown: time.Second, MaxCooldown: time.Second}
	c := NewCircuit(rule, func() int64 { return 0 }, func(bool) { told.Add(1) })
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			c.Settle(c.Ask(), Failed)
		})
		group.Go(func() { c.Rest() })
	}
	group.Wait()
	if rest := c.Rest(); rest != 1000 || told.Load() != 1 {
		t.Errorf("rests for %d ms and told %d times, want 1000 ms and once", rest, told.Load())
	}
}

// TestWhoIsToldMayAsk: a circuit is not held while it tells of a change.
func TestWhoIsToldMayAsk(t *testing.T) {
	rests := make(chan int64, 1)
	var c *Circuit
	rule := Rule{Failures: 1, Cooldown: time.Second, MaxCooldown: time.Second}
	c = NewCircuit(rule, func() int64 { return 0 }, func(bool) { rests <- c.Rest() })
	go c.Settle(c.Ask(), Failed)
	select {
	case rest := <-rests:
		if rest != 1000 {
			t.Errorf("when told it rests for %d ms", rest)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("whoever is told waits for good")
	}
}

// TestTheShortestRest: a cooldown too short for a clock of milliseconds is one.
func TestTheShortestRest(t *testing.T) {
	rule := Rule{Failures: 1, Cooldown: time.Microsecond, MaxCooldown: time.Microsecond}
	s := rule.Settle(State{}, 0, Pass{OK: true}, Failed)
	for now := range int64(3) {
		next, pass := rule.Ask(s, now)
		if pass.Wait != 1 {
			t.Fatalf("at %d: %+v, want to wait 1 ms", now, pass)
		}
		if next, pass = rule.Ask(next, now+1); !pass.Trial {
			t.Fatalf("at %d: %+v, want a trial", now+1, pass)
		}
		s = rule.Settle(next, now+1, pass, Failed)
	}
}
