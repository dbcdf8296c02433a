package faults_test

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/faults/judge"
)

// An outcome is what came of a run.
type outcome struct {
	requests, mails, degraded int
	failed                    int           // answered 5xx or refused by the relay, or not at all
	healed                    time.Duration // from the repair until the last node was well
	strained                  bool
	found                     []judge.Violation
}

// run makes one run of a kind.
func run(t testing.TB, k *kind, seed uint64, sh shape) outcome {
	s := newStand(t, k, seed, sh)
	l := newLoad(s, seed)
	before := s.figures(l)
	stopCollecting := s.collecting()
	stopWatching := s.watchMachine()

	l.run(sh.rate)
	time.Sleep(sh.calm + time.Duration(s.rng.Int64N(int64(sh.calm))))
	during := judge.Span{From: time.Now().UnixMilli()}
	k.strike(s)
	held := sh.hold
	if k.hold != nil {
		held = k.hold(sh)
	}
	time.Sleep(held)
	k.mend(s)
	healed, found := s.awaitHealth(l, k, held)
	during.To = time.Now().UnixMilli()
	time.Sleep(sh.after)
	l.stop()

	found = append(found, s.awaitNoDebts()...)
	stopCollecting()
	s.strained = stopWatching()
	standings := s.standings(l, k, during)
	found = append(found, s.leftovers(l, before)...)
	for _, n := range s.nodes {
		n.stop()
	}
	found = append(found, s.searchLogs(l)...)
	record := s.record(l, k, during, standings)
	found = append(append(found, s.post.wrong...), judge.Judge(record)...)
	return outcome{
		requests: len(record.Calls), mails: len(record.Mails), healed: healed, strained: s.strained, found: found,
		degraded: count(record.Calls, func(c *judge.Call) bool { return c.Degraded }),
		failed: count(record.Calls, func(c *judge.Call) bool {
			return c.Status == 0 || c.Status >= 500 || c.Kind == "recipient-rejected"
		}),
	}
}

// record is the run as the judge wants it.
func (s *stand) record(l *load, k *kind, during judge.Span, standings []judge.Standing) *judge.Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.post.mu.Lock()
	defer s.post.mu.Unlock()
	return &judge.Run{
		Tiers: s.tiers, Action: action, Guesses: guesses, Nodes: len(s.nodes), Terms: k.terms, Fault: during,
		Calls: l.calls, Mails: s.post.mails, Standings: standings, Strained: s.strained,
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

// collecting takes in what the relays receive, while it comes, until the function that it
// returns is called.
func (s *stand) collecting() (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.post.collect()
			case <-quit:
				s.post.collect()
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}

// watchMachine looks how late a short sleep ends, and says in the end whether the machine
// had so much else to do that a store cannot answer in time.
func (s *stand) watchMachine() (strained func() bool) {
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

// strain is a delay of a machine that is too busy.
const strain = 100 * time.Millisecond

// awaitHealth returns when every node sends again and says that it is ready.
func (s *stand) awaitHealth(l *load, k *kind, held time.Duration) (time.Duration, []judge.Violation) {
	mended := time.Now()
	limit := wellWithin
	if k.rest != nil {
		limit += k.rest(held)
	}
	var found []judge.Violation
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, n := range s.nodes {
		all.Go(func() {
			for try := 0; !s.well(l, n, try); try++ {
				if time.Since(mended) > limit+patience {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			if took := time.Since(mended); took > limit {
				mu.Lock()
				defer mu.Unlock()
				found = append(found, judge.Violation{Rule: "health",
					What: fmt.Sprintf("node %d was well %d ms after the repair, not within %d", n.number, took.Milliseconds(), limit.Milliseconds())})
			}
		})
	}
	all.Wait()
	return time.Since(mended), found
}

// well asks a node whether it is, and tries it out on a mailbox that nobody knows.
func (s *stand) well(l *load, n *node, try int) bool {
	if ready := l.caller.ask("GET", *n.url.Load()+"/readyz", "", ""); ready.status != 200 {
		return false
	}
	mailbox := fmt.Sprintf("%sw%dx%d", l.token, n.number, try)
	l.hide(mailbox)
	_, call := l.sendNow(n, mailbox, "", fmt.Sprintf(`{"email":"%s@%s"}`, mailbox, domainOf(mailbox)))
	return call.Status == 200 && !call.Degraded
}

// standings looks at the mailboxes that were answered with a no that costs nothing, and
// at some others. A place may take a while to be given back, so that they are looked at
// again until the judge is content, or the time is up.
func (s *stand) standings(l *load, k *kind, during judge.Span) (all []judge.Standing) {
	mailboxes := l.worthALook(s.shape.looks)
	for deadline := time.Now().Add(wellWithin); ; time.Sleep(200 * time.Millisecond) {
		all = all[:0]
		for i, mailbox := range mailboxes {
			if one, ok := s.standing(l, s.nodes[i%len(s.nodes)], mailbox); ok {
				all = append(all, one)
			}
		}
		if time.Now().After(deadline) || !contradicts(judge.Judge(s.record(l, k, during, all))) {
			return all
		}
	}
}

func contradicts(found []judge.Violation) bool {
	for _, v := range found {
		if v.Rule == "standings" {
			return true
		}
	}
	return false
}

func (s *stand) standing(l *load, n *node, mailbox string) (judge.Standing, bool) {
	r := l.caller.ask("GET", *n.url.Load()+"/mailboxes/"+mailbox+"@"+domainOf(mailbox), "", "")
	one := judge.Standing{Mailbox: mailbox, Used: make([]int, len(s.tiers))}
	if r.status != 200 || len(r.said.Limits) != len(s.tiers) {
		if !s.strained {
			s.t.Errorf("node %d, asked for a mailbox in the end: %d %s", n.number, r.status, r.kind())
		}
		return one, false
	}
	for i, limit := range r.said.Limits {
		one.Used[i] = limit.Limit - limit.Remaining
	}
	return one, true
}

// worthALook are mailboxes to look at: first those that should have been given back.
func (l *load) worthALook(most int) (mailboxes []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	chosen := map[string]bool{}
	for _, first := range []bool{true, false} {
		for i := range l.calls {
			c := &l.calls[len(l.calls)-1-i]
			if c.For != judge.Send || chosen[c.Subject] || (c.Status == 503) != first || len(chosen) >= most {
				continue
			}
			chosen[c.Subject] = true
			mailboxes = append(mailboxes, c.Subject)
		}
	}
	return mailboxes
}

// searchLogs looks for what no log may hold.
func (s *stand) searchLogs(l *load) (found []judge.Violation) {
	s.post.mu.Lock()
	for _, mailed := range s.post.codes {
		l.secret[mailed.code] = true
	}
	s.post.mu.Unlock()
	logs := map[string]string{}
	for _, n := range s.nodes {
		logs[fmt.Sprintf("node %d", n.number)] = n.logFile
	}
	for program, name := range logs {
		file, err := os.Open(name)
		if err != nil {
			s.t.Fatal(err)
		}
		violations, err := judge.Log(program, file, l.secret)
		file.Close()
		if err != nil {
			s.t.Error(err)
		}
		found = append(found, violations...)
	}
	return found
}
