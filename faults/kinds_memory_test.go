package faults_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/mailgate/mailgate/faults/judge"
)

// memoryKinds are refunds at one node of quota that all nodes remember to be used up, as they are asked
// for it again and again.
var memoryKinds = []*kind{
	{name: "flood-memory", store: onRedis, terms: quiet, brief: true, effect: remembers, inject: refundInFlood(200 * time.Millisecond)},
	{name: "flood-memory-deaf", store: behindProxy, brief: true, effect: losesReplies, inject: func(s *rig) func() {
		s.proxy.DropMessages("action-act") // is in the keys of the action, which are announced
		refundInFlood(1200 * time.Millisecond)(s)
		return s.proxy.Pass
	}},
}

// remembers: a node has refused without asking Redis.
var remembers = counts(1, func(s *rig) (n int) {
	for _, one := range s.nodes {
		all, _ := s.metricsOf(one) // without an answer there is none
		n += int(all[`mailgate_decisions_total{from="memory"}`])
	}
	return n
})

// refundInFlood fills the quota of a few subjects, and refunds a take while looks at all nodes go on, and
// for some time after.
func refundInFlood(after time.Duration) func(*rig) func() {
	return func(s *rig) func() {
		for i := range 3 {
			subject := fmt.Sprintf("%sf%d", s.load.token, i)
			s.load.hide(subject)
			var taken judge.Call
			for range s.action.Limit {
				taken = s.load.ask(s.nodes[0], "POST", "/actions/act/take", fmt.Sprintf(`{"subject":%q}`, subject), judge.Call{For: judge.Take, Subject: subject})
			}
			s.lookFor(200*time.Millisecond, subject)
			s.load.ask(s.nodes[i%len(s.nodes)], "POST", "/actions/act/release", fmt.Sprintf(`{"subject":%q,"id":%q}`, subject, taken.ID),
				judge.Call{For: judge.Release, Subject: subject, ID: taken.ID})
			s.lookFor(after, subject)
		}
		return noRepair
	}
}

// lookFor looks at a subject at all nodes for some time.
func (s *rig) lookFor(long time.Duration, subject string) {
	var all sync.WaitGroup
	for _, n := range s.nodes {
		all.Go(func() {
			for began := time.Now(); time.Since(began) < long; time.Sleep(2 * time.Millisecond) {
				s.load.ask(n, "POST", "/actions/act/peek", fmt.Sprintf(`{"subject":%q}`, subject), judge.Call{For: judge.Look, Subject: subject})
			}
		})
	}
	all.Wait()
}
