// The model runs one coroutine at a time, so there is no race to find, and the detector would take ten times as long.

//go:build !race

package standby

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/prober"
	"github.com/mailgate/mailgate/throttle"
)

// The model of an outage: two nodes take three steps each on one key, the first by Redis and two alone. Then each syncs
// its journal, call by call in every order, and one fault occurs at each point. The journal and the sync are the real
// ones. What Redis has afterwards must be what the nodes' steps give, each node's in its order and each by the algorithm
// that admitted it.

// modelStep is a step of a node.
type modelStep int

const (
	takeByRule modelStep = iota
	takeByOverride
	giveBack       // the first admission that it has
	giveBackNewest // the last
	modelSteps
)

// modelFault is what goes wrong at a call.
type modelFault int

const (
	noFault     modelFault = iota
	replyLost              // the call is carried out
	crashBefore            // the node restarts, and the call is not sent
	crashAfter             // the call is carried out, and the node restarts
	failover               // the newest change is forgotten, and the call is not carried out
	awayBefore             // the call is not carried out, and the node takes a further step alone
	awayAfter              // the call is carried out, and the node takes a further step alone
	modelFaults
)

var errModel = errors.New("a fault of the model")

// modelHome has the state of the key.
type modelHome struct {
	now     *int64
	state   []byte
	expires int64
	before  *modelHome // the newest change
}

func (m *modelHome) Do(_ context.Context, _ string, op throttle.Op) (throttle.Reply, error) {
	if *m.now >= m.expires {
		m.state = nil
	}
	next, r := op.Apply(m.state, *m.now)
	if !bytes.Equal(next, m.state) {
		before := *m
		m.before, m.state, m.expires = &before, next, op.By.Expires(next)
	}
	return r, nil
}

// modelEntry is a step that a node took alone.
type modelEntry struct {
	step throttle.Step
	by   throttle.Algorithm
	a    throttle.Admission
	ends int64 // when its window does

	again bool // Redis has it, and the reply was lost
}

func (e modelEntry) op() throttle.Op {
	return throttle.Op{Step: e.step, By: e.by, All: []throttle.Admission{e.a}}
}

// modelNode is a node whose own records and journal outlive a restart.
type modelNode struct {
	*home
	run     *modelRun
	redis   *throttle.Limiter
	own     *modelHome
	table   *cache.Table
	locks   *locks
	had     []modelEntry // admissions that it may give back
	alone   []modelEntry
	without []modelEntry        // alone, without what was charged and given back while Redis was away again; may be nil
	ask     func(struct{}) bool // has the run go on elsewhere
	crashed bool
	away    bool
}

// start is a start of the node, which reads its journal.
func (n *modelNode) start(t testing.TB) {
	n.crashed, n.away = false, false
	s := &Standby{o: Options{Clock: NewClock(), Log: slog.New(slog.DiscardHandler)}, locks: n.locks, work: t.Context()}
	s.journal = newJournal(n.table, maxOperations)
	s.o.Clock.Hear(*n.run.now, time.Now())
	s.mirror = &mirror{now: s.o.Clock.Now, log: s.o.Log, last: map[recordKey]chan struct{}{}}
	must.OK(t, s.journal.load(t.Context()))
	n.home = &home{part: &part{Standby: s, name: "rule", mirrored: true}, shared: n.redis, own: n.own}
	n.home.part.apply = n.home.apply
}

// Do asks Redis, with the fault that is chosen for this call.
func (n *modelNode) Do(ctx context.Context, key string, op throttle.Op) (r throttle.Reply, err error) {
	n.ask(struct{}{})
	fault := noFault
	if n.run.fault == noFault {
		fault = modelFault(n.run.choose(int(modelFaults)))
		n.run.fault = fault
	}
	if fault == failover {
		if before := n.run.redis.before; before != nil {
			*n.run.redis = *before
		}
		return r, errModel
	}
	n.crashed = fault == crashBefore || fault == crashAfter
	n.away = fault == awayBefore || fault == awayAfter
	if fault == crashBefore || fault == awayBefore {
		return r, errModel
	}
	if r, err = n.run.redis.Do(ctx, key, op); fault != noFault {
		return throttle.Reply{}, errModel
	}
	return r, err
}

// take takes one step, by Redis or alone.
func (n *modelNode) take(t testing.TB, s modelStep, decide func(op throttle.Op) (throttle.Reply, error)) (e modelEntry, done bool) {
	e = modelEntry{step: throttle.StepTake, by: n.run.rule, a: throttle.Admission{ID: throttle.ID(fmt.Appendf(nil, "%08d", *n.run.now%1e8))}}
	switch {
	case s >= giveBack && len(n.had) == 0:
		return e, false
	case s == giveBack:
		e, n.had = n.had[0], n.had[1:]
		e.step = throttle.StepRelease
	case s == giveBackNewest:
		e, n.had = n.had[len(n.had)-1], n.had[:len(n.had)-1]
		e.step = throttle.StepRelease
	case s == takeByOverride:
		e.by = n.run.override
	}
	r := must.Get(decide(e.op()))(t)
	if r.Done && s < giveBack {
		_, v := e.op().Take(r.State, r.Now)
		e.step, e.a = throttle.StepRecord, v.Admission
		n.had = append(n.had, e)
	}
	e.ends = max(*n.run.now, e.a.At) + e.by.Window()
	return e, r.Done || s >= giveBack && e.by.Exact()
}

// takeAlone takes one step alone, and notes it. What was charged and given back alone was never there.
func (n *modelNode) takeAlone(t testing.TB, s modelStep) {
	e, done := n.take(t, s, func(op throttle.Op) (throttle.Reply, error) { return n.home.alone(t.Context(), modelKey.key, op) })
	if !done {
		return
	}
	before := n.alone
	n.alone = append(slices.Clip(before), e)
	if charged := slices.IndexFunc(before, func(c modelEntry) bool { return c.a.ID == e.a.ID }); charged >= 0 {
		n.without = slices.Delete(slices.Clone(before), charged, charged+1)
		if !n.away {
			n.alone, n.without = n.without, nil
		}
	}
}

// modelRun is one run.
type modelRun struct {
	choices
	rule, override throttle.Algorithm
	now            *int64
	redis          *modelHome
	fault          modelFault
	locks          [2]*locks
	gives          map[string]map[string]bool // what the steps may give, by the fault and the entries
}

// modelCase is what is walked: two algorithms on one record, and the steps of both nodes.
type modelCase struct {
	rule, override throttle.Algorithm
	steps          [2][3]modelStep
	spoil          func(all []operation, rule throttle.Algorithm) // what a node has in its journal; may be nil
}

var modelKey = recordKey{"rule", "alice"}

// walkModel walks all runs, and returns the first that ends in a state that the steps do not give.
func walkModel(t testing.TB, c modelCase) (runs int, fault string) {
	run := &modelRun{rule: c.rule, override: c.override, locks: [2]*locks{newLocks(), newLocks()}, gives: map[string]map[string]bool{}}
	for more := true; more && fault == ""; more = run.another() {
		runs++
		fault = run.walk(t, c)
	}
	return runs, fault
}

func (run *modelRun) walk(t testing.TB, c modelCase) (wrong string) {
	moment := int64(1_800_000_000_000)
	run.now, run.fault = &moment, noFault
	run.redis = &modelHome{now: run.now}
	store := must.Get(cache.Open(cache.Options{Now: func() int64 { return *run.now }}))(t)
	defer store.Close()
	var nodes [2]*modelNode
	for i := range nodes {
		n := &modelNode{run: run, own: &modelHome{now: run.now}, table: store.Table(fmt.Sprint("journal", i)), locks: run.locks[i]}
		n.redis = throttle.New(c.rule, n)
		n.start(t)
		nodes[i] = n
	}
	for at := range 3 {
		for i, n := range nodes {
			*run.now += 1000
			n.o.Clock.Hear(*run.now, time.Now())
			if at == 0 {
				n.take(t, c.steps[i][at], func(op throttle.Op) (throttle.Reply, error) {
					r, err := run.redis.Do(t.Context(), modelKey.key, op)
					n.copy(modelKey.key, op, r)
					return r, err
				})
			} else {
				n.takeAlone(t, c.steps[i][at])
			}
		}
	}
	run.redis.before = nil
	first := *run.redis
	for _, n := range nodes {
		if all := n.journal.records[modelKey]; all != nil && c.spoil != nil {
			c.spoil(all, c.rule)
		}
	}
	*run.now += 2000
	run.sync(t, nodes[:])
	got := run.verdicts(run.redis)
	allowed := run.allowed(first, nodes[0], nodes[1])
	if !allowed[got] {
		return fmt.Sprintf("%v with fault %d, choices %v: Redis says %s; the steps give %v", c.steps, run.fault, run.made, got, slices.Sorted(maps.Keys(allowed)))
	}
	return ""
}

// sync has both nodes sync their journals, call by call.
func (run *modelRun) sync(t testing.TB, nodes []*modelNode) {
	var goOn []func() (struct{}, bool)
	for _, n := range nodes {
		next, stop := iter.Pull(func(yield func(struct{}) bool) {
			n.ask = yield
			for n.journal.has(modelKey) {
				if err := n.settle(t.Context(), new(prober.Master), modelKey.key); err != nil && !errors.Is(err, errModel) {
					t.Fatal(err)
				}
				if n.crashed {
					n.start(t)
				}
				if n.away {
					n.takeAlone(t, []modelStep{takeByRule, giveBackNewest}[run.choose(2)])
					n.away = false
				}
			}
		})
		defer stop()
		if _, more := next(); more {
			goOn = append(goOn, next)
		}
	}
	for len(goOn) > 0 {
		i := run.choose(len(goOn))
		if _, more := goOn[i](); !more {
			goOn = slices.Delete(goOn, i, i+1)
		}
	}
}

// verdicts is what a state says by both algorithms.
func (run *modelRun) verdicts(m *modelHome) string {
	if *m.now >= m.expires {
		m.state = nil
	}
	a, b := run.rule.Peek(m.state, *m.now), run.override.Peek(m.state, *m.now)
	return fmt.Sprintf("%d sent, %d left, wait %d; %d sent, %d left, wait %d", a.Sent, a.Remaining(), a.Wait, b.Sent, b.Remaining(), b.Wait)
}

// allowed returns what Redis may say: what both nodes' steps give, in every order that keeps each node's. A lost reply or
// a crash may have a counter count some twice, and miss a refund, and a start leaves out what no longer counts by its
// own windows. A failover may forget some.
func (run *modelRun) allowed(first modelHome, a, b *modelNode) map[string]bool {
	given := fmt.Sprint(run.fault, a.alone, a.without, b.alone, b.without)
	if run.gives[given] != nil {
		return run.gives[given]
	}
	allowed := map[string]bool{}
	run.gives[given] = allowed
	for _, ofA := range a.entries() {
		for _, ofB := range b.entries() {
			run.merge(first, [2][]modelEntry{ofA, ofB}, map[string]bool{}, allowed)
		}
	}
	return allowed
}

// entries returns the node's entries, and what they may be besides.
func (n *modelNode) entries() [][]modelEntry {
	if n.without == nil {
		return [][]modelEntry{n.alone}
	}
	return [][]modelEntry{n.alone, n.without}
}

// merge notes what comes of the entries that are left, by all ways that were not seen yet.
func (run *modelRun) merge(m modelHome, left [2][]modelEntry, seen, allowed map[string]bool) {
	way := fmt.Sprint(left, m.expires, m.state)
	if seen[way] {
		return
	}
	seen[way] = true
	if len(left[0])+len(left[1]) == 0 {
		allowed[run.verdicts(&m)] = true
	}
	for i, all := range left {
		if len(all) == 0 {
			continue
		}
		rest := left
		rest[i] = all[1:]
		for _, times := range run.times(all[0]) {
			after := m
			if times > 0 {
				_, _ = after.Do(context.Background(), "", all[0].op())
			}
			if times > 1 { // the other node's may be in between
				rest[i] = slices.Clone(all)
				rest[i][0].again = true
			}
			run.merge(after, rest, seen, allowed)
		}
	}
}

// times returns how often Redis may have carried out an entry.
func (run *modelRun) times(e modelEntry) []int {
	switch {
	case run.fault == noFault || e.again:
		return []int{1}
	case run.fault == failover || e.ends <= *run.now || e.step == throttle.StepRelease && !e.by.Exact():
		return []int{0, 1}
	case !e.by.Exact():
		return []int{1, 2}
	}
	return []int{1}
}
