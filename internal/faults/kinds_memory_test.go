package faults_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/mailgate/mailgate/internal/faults/judge"
)

// memoryKinds are refunds and resets at one node of quota that all nodes remember to be used up, as they are
// asked for it again and again.
var memoryKinds = []*kind{
	{name: "flood-memory", store: onRedis, terms: quiet, brief: true, effect: remembers, inject: giveBackInFlood(1200 * time.Millisecond)},
}

// remembers: a node has refused without asking Redis.
var remembers = counts(1, func(s *rig) (n int) {
	for _, one := range s.nodes {
		all, _ := s.metricsOf(one) // without an answer there is none
		n += int(all[`mailgate_decisions_total{from="memory"}`])
	}
	return n
})

// giveBackInFlood fills the quota of a few subjects, and refunds a take or resets the subject while looks at all
// nodes go on, and for some time after.
func giveBackInFlood(after time.Duration) func(*rig) func() {
	return func(s *rig) func() {
		for i := range 4 {
			subject, n := fmt.Sprintf("%sf%d", s.load.token, i), s.nodes[i%len(s.nodes)]
			s.load.hide(subject)
			var taken []judge.Call
			for range s.action.Limit {
				taken = append(taken, s.load.ask(s.nodes[0], "POST", "/actions/act/take", fmt.Sprintf(`{"subject":%q}`, subject), judge.Call{For: judge.Take, Subject: subject}))
			}
			s.lookFor(200*time.Millisecond, subject)
			if i%2 == 0 {
				last := taken[len(taken)-1].ID
				s.load.ask(n, "POST", "/actions/act/release", fmt.Sprintf(`{"subject":%q,"id":%q}`, subject, last), judge.Call{For: judge.Release, Subject: subject, ID: last})
			} else {
				s.load.reset(n, subject, taken)
			}
			s.lookFor(after, subject)
		}
		return noRepair
	}
}

// reset has a node reset a subject, which gives back all that was taken of it.
func (l *load) reset(n *node, subject string, taken []judge.Call) {
	at := judge.Span{From: time.Now().UnixMilli()}
	if r := l.rig.ask(n, "POST", "/admin/actions/act/reset", fmt.Sprintf(`{"subject":%q}`, subject), ""); r.status != 200 {
		l.rig.t.Errorf("reset: %d %s %v", r.status, r.text, r.err)
	}
	at.To = time.Now().UnixMilli()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range taken {
		l.calls = append(l.calls, judge.Call{For: judge.Release, Node: n.number, Subject: subject, ID: one.ID, Released: true, Status: 200, Span: at})
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
