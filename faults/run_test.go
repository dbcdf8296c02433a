package faults_test

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/faults/judge"
)

// outcome is the result of a run.
type outcome struct {
	requests, mails, degraded int
	failed                    int           // answered 5xx or refused by the relay, or not at all
	healed                    time.Duration // from the repair until the last node was healthy
	strained                  bool
	record                    *judge.Run
	logged                    string // by the nodes, requests left out
	found                     []judge.Violation
}

// run makes one run of a kind.
func run(t testing.TB, k *kind, seed uint64, sh shape) outcome {
	choice := policies
	if k.solo {
		choice = policies[:2] // one email; three, of which an Idempotency-Key allows one
	}
	s := newRig(t, k, choice[int(seed)%len(choice)], seed, sh)
	r := s.begin()
	time.Sleep(sh.calm + s.randomly(sh.calm))
	held := sh.hold
	if k.hold != nil {
		held = k.hold(sh)
	}
	healed := r.injectFault(k, held)
	time.Sleep(sh.after)
	return r.finish(k.terms, healed)
}

// running is a run in progress.
type running struct {
	*rig
	before         []judge.Figure
	goroutines     []judge.Figure
	stopCollecting func()
	stopWatching   func() bool
	faults, held   []judge.Span
	recoveries     []recovery
	noEffect       []judge.Violation
}

func (s *rig) begin() *running {
	r := &running{rig: s, before: s.figures(), goroutines: s.goroutines(), stopCollecting: s.collecting(), stopWatching: s.watchMachine()}
	s.load.run(s.shape.rate)
	return r
}

// injectFault injects a fault, repairs it after a while, and returns when all nodes are healthy
// again, and how long that took.
func (r *running) injectFault(k *kind, held time.Duration) time.Duration {
	seen := k.effect(r)
	during := judge.Span{From: time.Now().UnixMilli()}
	k.inject(r.rig)
	struck := time.Now()
	firm := judge.Span{From: struck.UnixMilli()}
	time.Sleep(held)
	r.awaitEffect(k, seen)
	held = time.Since(struck)
	firm.To = time.Now().UnixMilli()
	k.repair(r.rig)
	recoveries := r.awaitHealth(k, held)
	during.To = time.Now().UnixMilli()
	r.faults, r.held, r.recoveries = append(r.faults, during), append(r.held, firm), append(r.recoveries, recoveries...)
	return slices.MaxFunc(recoveries, func(a, b recovery) int { return cmp.Compare(a.took, b.took) }).took
}

// finish ends a run and judges it.
func (r *running) finish(terms judge.Terms, healed time.Duration) outcome {
	s := r.rig
	s.load.stop()
	found := s.awaitEmptyJournals()
	r.stopCollecting()
	s.relays.empty(s.t)
	record := s.record(terms, r.faults)
	record.Held = r.held
	s.finals(record)
	s.strained = r.stopWatching()
	record.Strained = s.strained
	found = append(append(found, r.late()...), r.noEffect...)
	if !s.strained {
		found = append(found, s.unanswered...)
	}
	found = append(append(found, s.leftovers(r.before)...), s.leftGoroutines(r.goroutines)...)
	for _, n := range s.nodes {
		n.stop()
	}
	found = append(found, s.searchLogs()...)
	found = append(append(found, s.relays.wrong...), judge.Judge(record)...)
	return outcome{
		requests: len(record.Calls), mails: len(record.Mails), healed: healed, strained: s.strained, found: found, record: record, logged: s.logged(),
		degraded: count(record.Calls, func(c *judge.Call) bool { return c.Degraded }),
		failed: count(record.Calls, func(c *judge.Call) bool {
			return c.Status == 0 || c.Status >= 500 || c.Kind == "recipient-rejected"
		}),
	}
}

// record is the run for the judge, without the final states.
func (s *rig) record(terms judge.Terms, during []judge.Span) *judge.Run {
	l := s.load
	l.mu.Lock()
	defer l.mu.Unlock()
	s.relays.mu.Lock()
	defer s.relays.mu.Unlock()
	return &judge.Run{
		Tiers: s.tiers, Action: s.action, Guesses: guesses, Nodes: len(s.nodes), Terms: terms, Faults: during,
		Calls: l.calls, Mails: s.relays.mails,
	}
}

func count(calls []judge.Call, holds func(*judge.Call) bool) (n int) {
	for i := range calls {
		if holds(&calls[i]) {
			n++
		}
	}
	return n
}

// collecting collects what the relays receive until the returned function is called.
func (s *rig) collecting() (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.relays.collect()
			case <-quit:
				s.relays.collect()
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}

// watchMachine looks how late a short sleep ends, and says in the end whether the machine
// had so much else to do that a store cannot answer in time.
func (s *rig) watchMachine() (strained func() bool) {
	quit, latest := make(chan struct{}), make(chan time.Duration)
	go func() {
		const nap = 10 * time.Millisecond
		var most time.Duration
		for {
			began := time.Now()
			select {
			case <-time.After(nap):
				most = max(most, time.Since(began)-nap)
			case <-quit:
				latest <- most
				return
			}
		}
	}()
	return func() bool { close(quit); return <-latest > strain }
}

// strain is a delay of an overloaded machine: after a few of them a healthy Redis seems not to
// answer within its 250 ms.
const strain = 40 * time.Millisecond

// recovery is how long a node took to be healthy again, and how long it may.
type recovery struct {
	node        int
	took, limit time.Duration
}

// awaitHealth returns when every node is healthy, or has had too much time.
func (s *rig) awaitHealth(k *kind, held time.Duration) []recovery {
	repaired := time.Now()
	limit := healthyWithin
	if k.rest != nil {
		limit += k.rest(held)
	}
	all := make([]recovery, len(s.nodes))
	var done sync.WaitGroup
	for i, n := range s.nodes {
		done.Go(func() {
			for try := 0; time.Since(repaired) < limit+patience && !s.healthy(n, try); try++ {
				time.Sleep(50 * time.Millisecond)
			}
			all[i] = recovery{n.number, time.Since(repaired), limit}
		})
	}
	done.Wait()
	return all
}

// late are the recoveries that took too long. An overloaded machine has more time.
func (r *running) late() (found []judge.Violation) {
	for _, one := range r.recoveries {
		if r.strained {
			one.limit *= 4
		}
		if one.took > one.limit {
			found = append(found, judge.Violation{Rule: "health",
				What: fmt.Sprintf("node %d was healthy %d ms after the repair, not within %d", one.node, one.took.Milliseconds(), one.limit.Milliseconds())})
		}
	}
	return found
}

// healthy asks a node whether it is ready and not degraded, and has it send to a new mailbox.
func (s *rig) healthy(n *node, try int) bool {
	if ready := s.caller.ask("GET", *n.url.Load()+"/readyz", "", ""); ready.status != 200 || ready.said.Degraded {
		return false
	}
	mailbox := fmt.Sprintf("%sw%dx%d", s.load.token, n.number, try)
	s.load.hide(mailbox)
	_, call := s.load.sendNow(n, mailbox, "", fmt.Sprintf(`{"email":"%s@%s"}`, mailbox, domainOf(mailbox)))
	return call.Status == 200 && !call.Degraded
}
