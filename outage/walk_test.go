package outage_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// A walker is three nodes on a random walk, and what they have admitted.
type walker struct {
	t      *testing.T
	random *rand.Rand
	clock  *clocktest.Clock
	policy throttle.Policy
	nodes  []*node
	cut    []*shared // each node's own way to the one history
	sends  map[string]throttle.History
}

// Whatever becomes of the ways to the shared history: no node admits more than the tiers
// alone, none more than the tiers are admitted together, and when all is mended on record is
// exactly what was admitted and not given back.
func TestRandomWalk(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newWalker(t, seed)
			for range 30 {
				w.stroll()
				w.mend()
			}
		})
	}
}

func newWalker(t *testing.T, seed uint64) *walker {
	w := &walker{t: t, random: rand.New(rand.NewPCG(seed, 7)), clock: clocktest.New(start),
		policy: throttletest.Policy(t, "second=1/1s,minute=3/60s"), sends: map[string]throttle.History{}}
	one := openShared(t, w.policy, w.clock)
	for range 3 {
		way := &shared{Survey: one.Survey}
		n := openNode(t, way, cachetest.Open(t, cache.Memory), w.policy, w.clock.Now, nil)
		n.watch.Start()
		w.cut, w.nodes = append(w.cut, way), append(w.nodes, n)
	}
	return w
}

// stroll is a hundred steps.
func (w *walker) stroll() {
	for range 100 {
		key := fmt.Sprintf("%c@example.com", 'a'+rune(w.random.IntN(2)))
		i := w.random.IntN(len(w.nodes))
		switch dice := w.random.IntN(20); {
		case dice < 3:
			w.cut[i].set(fault(w.random.IntN(4)))
		case dice < 8:
			w.clock.Add(int64(w.random.IntN(800)))
		case dice < 10:
			w.release(i, key)
		default:
			w.take(i, key)
		}
	}
}

func (w *walker) take(i int, key string) {
	id, together := throttle.NewID(), w.together() // a node may learn that all is well as it takes
	v := w.nodes[i].take(key, id)
	if !v.Allowed {
		return
	}
	before := w.sends[key]
	w.sends[key] = append(slices.Clone(before), throttle.Admission{ID: id, At: w.clock.Now()})
	if !v.Degraded && together && !throttle.Decide(w.policy, before, w.clock.Now()).Allowed {
		w.t.Fatalf("more than the tiers together: %v", w.sends[key])
	}
}

// together reports whether all nodes reach the shared history, which knows all.
func (w *walker) together() bool {
	return !slices.ContainsFunc(w.nodes, func(n *node) bool { s := n.watch.State(); return s.Degraded || s.Debts > 0 })
}

// release gives back the last send of a key, on the node that made it if it was this one.
func (w *walker) release(i int, key string) {
	sends := w.sends[key]
	if len(sends) == 0 {
		return
	}
	last := sends[len(sends)-1]
	if w.nodes[i].history(w.nodes[i].own, key).Find(last.ID) < 0 {
		return
	}
	if released, err := w.nodes[i].Release(context.Background(), key, last.ID); err != nil || !released {
		w.t.Fatalf("release: %v, %v", released, err)
	}
	w.sends[key] = sends[:len(sends)-1]
}

// mend lets all nodes reach the shared history, and compares it with what was admitted.
func (w *walker) mend() {
	w.t.Helper()
	for _, way := range w.cut {
		way.set(none)
	}
	for _, n := range w.nodes {
		n.healthy()
	}
	for key, sends := range w.sends {
		want := sends.Within(w.policy.Longest(), w.clock.Now())
		got := w.nodes[0].history(w.cut[0].Survey, key)
		if !slices.Equal(inOrder(got), inOrder(want)) {
			w.t.Fatalf("%s: on record is\n%v\nwant\n%v", key, got, want)
		}
		for i, n := range w.nodes {
			w.withinTiers(i, n.history(n.own, key))
		}
	}
}

// inOrder is a history in one order, also of what came in one millisecond.
func inOrder(h throttle.History) throttle.History {
	return slices.SortedFunc(slices.Values(h), func(a, b throttle.Admission) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID.String(), b.ID.String()))
	})
}

// withinTiers fails unless a node has admitted no more than the tiers by itself.
func (w *walker) withinTiers(i int, own throttle.History) {
	w.t.Helper()
	for v := range throttle.Replay(w.policy, own) {
		w.t.Fatalf("node %d has admitted more than %s: %v", i, v.Limit, own)
	}
}

// flicker has the line go through all faults, again and again, until it is stopped.
func (l *line) flicker() (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for f := 0; ; f++ {
			select {
			case <-end:
				return
			default:
				l.set(fault(f % 4))
			}
		}
	}()
	return func() {
		close(end)
		<-ended
		l.set(none)
	}
}

// takeAtOnce has eight callers at a node, and returns the sends that were admitted.
func takeAtOnce(n *node, key string) (admitted []throttle.ID) {
	outcomes := make(chan throttle.ID, 8)
	for range cap(outcomes) {
		go func() {
			id := throttle.NewID()
			v, err := n.Take(context.Background(), key, id)
			if err != nil && !errors.Is(err, throttle.ErrUnavailable) {
				n.t.Error(err)
			}
			if !v.Allowed {
				id = throttle.ID{}
			}
			outcomes <- id
		}()
	}
	for range cap(outcomes) {
		if id := <-outcomes; id.Valid() {
			admitted = append(admitted, id)
		}
	}
	return admitted
}

// Many callers at one node, while the shared history comes and goes: the node admits no more
// than its tiers, not even where one is admitted alone and another together at once.
func TestRaceThroughAnOutage(t *testing.T) {
	const tiers = "second=1/1s,minute=3/60s"
	n, clock := opened(t, tiers)
	stop := n.shared.flicker()
	admitted := map[throttle.ID]bool{}
	for range 300 {
		clock.Add(997)
		for _, id := range takeAtOnce(n, alice) {
			admitted[id] = true
		}
	}
	stop()
	n.healthy()
	own, there := n.history(n.own, alice), n.history(n.shared.Survey, alice)
	for v := range throttle.Replay(throttletest.Policy(t, tiers), own) {
		t.Errorf("more than %s: %v", v.Limit, own)
	}
	if len(own) != len(there) {
		t.Errorf("of its own: %v\non record:  %v", own, there)
	}
	for _, send := range there {
		if !admitted[send.ID] {
			t.Errorf("%v is on record, and nobody was told so", send)
		}
	}
}
