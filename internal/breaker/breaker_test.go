package breaker

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// step is one event at a time of the clock: a call that asks, or the oldest one that ends.
type step struct {
	at   int64
	end  Outcome // 0: a call asks
	wait int64   // what it is told; 0: it passes
}

func ask(at, wait int64) step      { return step{at: at, wait: wait} }
func end(at int64, o Outcome) step { return step{at: at, end: o} }

// opened are the steps by which the circuit of TestCircuit_StepByStep_OpensAndCloses opens at 0.
func opened(then ...step) []step {
	return append([]step{ask(0, 0), end(0, Failed), ask(0, 0), end(0, Failed)}, then...)
}

func TestCircuit_StepByStep_OpensAndCloses(t *testing.T) {
	rule := Rule{Failures: 2, Cooldown: time.Second, MaxCooldown: 3 * time.Second}
	for name, steps := range map[string][]step{
		"failures in a row open":            opened(ask(0, 1000), ask(999, 1)),
		"an answer resets the count":        {ask(0, 0), end(0, Failed), ask(0, 0), end(0, Answered), ask(0, 0), end(0, Failed), ask(0, 0)},
		"what is not judged does not count": {ask(0, 0), end(0, Failed), ask(0, 0), end(0, NotJudged), ask(0, 0), end(0, Failed), ask(0, 1000)},
		"one trial at a time":               opened(ask(1000, 0), ask(1000, AfterTrial), ask(5000, AfterTrial)),
		"a good trial closes":               opened(ask(1000, 0), end(1100, Answered), ask(1100, 0), ask(1100, 0), end(1100, Failed), ask(1100, 0)),
		"a trial given up allows another":   opened(ask(1000, 0), end(1001, NotJudged), ask(1001, 0)),
		"calls from before change nothing":  append([]step{ask(0, 0), ask(0, 0)}, opened(end(900, Failed), end(900, Answered), ask(900, 100))...),
		"a clock that steps back":           {ask(1e9, 0), end(1e9, Failed), ask(1e9, 0), end(1e9, Failed), ask(0, 1000), ask(1000, 0)},
		"bad trials double the cooldown":    opened(ask(1000, 0), end(1000, Failed), ask(1000, 2000), ask(3000, 0), end(3000, Failed), ask(3000, 3000), ask(6000, 0), end(6000, Failed), ask(6000, 3000)),
		"a call from before is not the trial": {
			ask(0, 0), ask(0, 0), ask(0, 0), end(0, Failed), end(0, Failed),
			ask(1000, 0), end(1001, Answered), ask(1001, AfterTrial), end(1002, Answered), ask(1002, 0),
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := int64(0)
			circuit := NewCircuit(rule, func() int64 { return now })
			var passes []Pass
			for i, s := range steps {
				now = s.at
				if s.end != 0 {
					circuit.Settle(passes[0], s.end)
					passes = passes[1:]
					continue
				}
				wait := circuit.Wait()
				p := circuit.Ask()
				if p.Wait != s.wait || p.OK != (s.wait == 0) || wait != p.Wait {
					t.Fatalf("step %d at %d: %+v after a wait of %d, want %d", i, s.at, p, wait, s.wait)
				}
				if p.OK {
					passes = append(passes, p)
				}
			}
		})
	}
}

// Of many simultaneous calls one is the trial, and no failure is lost. Changes are told once.
func TestCircuit_Concurrent_CountsEach(t *testing.T) {
	var now atomic.Int64
	var turned atomic.Int64
	circuit := NewCircuit(Rule{Failures: 32, Cooldown: time.Microsecond, MaxCooldown: time.Second}, now.Load)
	all := func(call func()) {
		var group sync.WaitGroup
		for range 32 {
			group.Go(call)
		}
		group.Wait()
	}
	all(func() {
		if circuit.Settle(circuit.Ask(), Failed) {
			turned.Add(1)
		}
	})
	if wait := circuit.Wait(); wait != 1 || turned.Load() != 1 {
		t.Fatalf("after as many failures as it takes it waits %d ms, want 1; it told %d changes", wait, turned.Load())
	}
	now.Add(1)
	var trials atomic.Int64
	all(func() {
		if circuit.Ask().Trial {
			trials.Add(1)
		}
	})
	if trials.Load() != 1 || !circuit.Open() {
		t.Errorf("%d trials, open %v; want one, and open until it ends", trials.Load(), circuit.Open())
	}
	if !circuit.Settle(Pass{OK: true, Trial: true}, Answered) || circuit.Open() {
		t.Error("it has not told that it closed")
	}
}

// A server that answers otherwise closes it, and the next failures open it for the first cooldown.
func TestCircuit_Close_BeginsAnew(t *testing.T) {
	c := NewCircuit(Rule{Failures: 1, Cooldown: time.Second, MaxCooldown: 9 * time.Second}, func() int64 { return 0 })
	for range 2 {
		opened := c.Settle(c.Ask(), Failed)
		if wait := c.Wait(); wait != 1000 || !opened {
			t.Errorf("it waits %d ms; it told that it opened: %v", wait, opened)
		}
		first, second := c.Close(), c.Close()
		if c.Open() || c.Wait() != 0 || !first || second {
			t.Errorf("it is open, or told wrongly that it closed: %v, %v", first, second)
		}
	}
}
