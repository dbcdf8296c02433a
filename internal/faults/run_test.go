package faults_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/faults/judge"
)

// outcome is the result of a run.
type outcome struct {
	record *judge.Run
	logged string // by the nodes, requests left out
	found  []judge.Violation
}

// run makes one run of a kind.
func run(t testing.TB, k *kind, seed uint64, sh shape) outcome {
	choice := policies
	if k.solo {
		choice = policies[:2] // one email; three, of which an Idempotency-Key allows one
	}
	s := newRig(t, k, choice[int(seed)%len(choice)], seed, sh)
	s.begin()
	time.Sleep(sh.calm + s.randomly(sh.calm))
	held := sh.hold
	if k.brief {
		held = 0
	}
	s.injectFault(k, held)
	time.Sleep(sh.after)
	return s.finish(k.terms)
}

// begin begins the load, and what goes on beside it.
func (s *rig) begin() {
	s.figuresBefore, s.goroutinesBefore = s.figures(resources), s.figures(goroutines)
	s.stopCollecting = repeat(100*time.Millisecond, s.collect)
	s.stopWatching = repeat(nap, s.watchMachine())
	s.stopLoad = repeat(time.Second/time.Duration(s.shape.rate), s.load.begin)
}

// repeat does something again and again until it is stopped.
func repeat(every time.Duration, do func()) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				do()
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}

const (
	nap = 10 * time.Millisecond
	// strain is a delay of an overloaded machine: after a few of them a healthy Redis seems not to
	// answer within its 250 ms.
	strain = 40 * time.Millisecond
)

// watchMachine looks how late it is called, and so whether the machine has so much else to do that
// a store cannot answer in time.
func (s *rig) watchMachine() func() {
	last := time.Now()
	return func() {
		s.strained = s.strained || time.Since(last) > nap+strain
		last = time.Now()
	}
}

// injectFault injects a fault, repairs it after a while, and returns when all nodes are healthy
// again.
func (s *rig) injectFault(k *kind, held time.Duration) {
	seen := k.effect(s)
	during := judge.Span{From: time.Now().UnixMilli()}
	repair := k.inject(s)
	struck := time.Now()
	firm := judge.Span{From: struck.UnixMilli()}
	time.Sleep(held)
	s.awaitEffect(k, seen)
	held = time.Since(struck)
	firm.To = time.Now().UnixMilli()
	repair()
	s.recoveries = append(s.recoveries, s.awaitHealth(k, held))
	during.To = time.Now().UnixMilli()
	s.faults, s.held = append(s.faults, during), append(s.held, firm)
}

// finish ends a run and judges it.
func (s *rig) finish(terms judge.Terms) outcome {
	s.stopLoad()
	s.load.ends.Wait()
	found := s.awaitEmptyJournals()
	s.stopCollecting()
	s.collect()
	record := &judge.Run{
		Tiers: s.tiers, Action: s.action, Guesses: guesses, Nodes: len(s.nodes), Terms: terms, Faults: s.faults, Held: s.held,
		Calls: s.load.calls, Mails: s.received.mails,
	}
	s.finals(record)
	s.stopWatching()
	record.Strained = s.strained
	if !s.strained {
		found = append(found, s.unanswered...)
	}
	found = slices.Concat(found, s.late(), s.noEffect, s.leftovers())
	logged := ""
	for _, n := range s.nodes {
		n.stop()
		logged += fmt.Sprintf("node %d:\n%s", n.number, n.logged())
	}
	found = slices.Concat(found, s.searchLogs(), s.received.wrong, judge.Judge(record))
	return outcome{record, logged, found}
}

// recovery is how long the nodes took to be healthy again, and how long they may.
type recovery struct{ took, limit time.Duration }

// awaitHealth returns when every node is healthy, or has had too much time.
func (s *rig) awaitHealth(k *kind, held time.Duration) recovery {
	repaired := time.Now()
	limit := healthyWithin
	if k.rest != nil {
		limit += k.rest(held)
	}
	var done sync.WaitGroup
	for _, n := range s.nodes {
		done.Go(func() {
			for try := 0; time.Since(repaired) < limit+patience && !s.healthy(n, try); try++ {
				time.Sleep(50 * time.Millisecond)
			}
		})
	}
	done.Wait()
	return recovery{time.Since(repaired), limit}
}

// late are the recoveries that took too long. An overloaded machine has more time.
func (s *rig) late() (found []judge.Violation) {
	for _, one := range s.recoveries {
		if s.strained {
			one.limit *= 4
		}
		if one.took > one.limit {
			found = append(found, judge.Violation{Rule: "health",
				What: fmt.Sprintf("the nodes were healthy %d ms after the repair, not within %d", one.took.Milliseconds(), one.limit.Milliseconds())})
		}
	}
	return found
}

// healthy asks a node whether it is ready and not degraded, and has it send to a new mailbox.
func (s *rig) healthy(n *node, try int) bool {
	if ready := s.ask(n, "GET", "/readyz", "", ""); ready.status != 200 || ready.said.Degraded {
		return false
	}
	mailbox := fmt.Sprintf("%sw%dx%d", s.load.token, n.number, try)
	s.load.hide(mailbox)
	call := s.load.sendNow(n, mailbox, "", fmt.Sprintf(`{"email":"%s@%s"}`, mailbox, domainOf(mailbox)))
	return call.Status == 200 && !call.Degraded
}
