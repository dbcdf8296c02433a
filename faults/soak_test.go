package faults_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/mailgate/mailgate/faults/judge"
)

var (
	soakFor  = flag.Duration("for", 0, "how long TestSoak takes; without it there is none")
	soakSeed = flag.Uint64("seed", 1, "which faults TestSoak has, and when")
)

// soakKinds are the faults of a soak: those that leave the nodes alive, whose memory it
// is about.
var soakKinds = []string{
	"relay-silent-ehlo", "relay-silent-rcpt", "relay-silent-dot", "relay-reset-dot", "relay-421", "relay-5xx", "relay-barred", "relay-drip",
	"redis-killed", "redis-stopped", "redis-partition", "redis-refused", "redis-reply-cut", "redis-reply-dropped",
	"redis-script-flush", "redis-full", "node-files",
}

// anything is what the faults of a soak may cause.
var anything = slices.Concat(noHistory, noRelay, []string{"recipient-rejected"})

// soakPolicy has windows longer than any soak.
const soakPolicy = "a=3/24h,b=5/72h"

// soaked is how the soak runs.
var soaked = shape{rate: 100, hold: 4 * time.Second, effect: 15 * time.Second, looks: 400}

// soakGrowth is by how much a node's memory may seem to grow in the second half.
const soakGrowth = 24 << 20

// TestSoak has faults inject at random for a long time, and looks whether the nodes'
// memory finds its level.
func TestSoak(t *testing.T) {
	if *soakFor == 0 {
		t.Skip("make soak runs it")
	}
	// On a disk: in memory there is room for all that was admitted in the longest window.
	base := &kind{name: "soak", store: soSmall, terms: judge.Terms{Alone: true, Fails: anything}}
	s := newRig(t, base, soakPolicy, *soakSeed, soaked)
	s.begin()
	memory, heaps := make([][]float64, len(s.nodes)), make([][]float64, len(s.nodes))
	report := &table{rows: map[string]*row{}}
	for began := time.Now(); time.Since(began) < *soakFor; {
		name := soakKinds[s.rng.IntN(len(soakKinds))]
		k := kinds[slices.IndexFunc(kinds, func(k *kind) bool { return k.name == name })]
		healed := s.injectFault(k, soaked.hold/2+s.randomly(soaked.hold))
		report.add(k.name, outcome{healed: healed})
		time.Sleep(time.Second + s.randomly(4*time.Second))
		s.weigh("process_resident_memory_bytes", memory)
		s.weigh(heap, heaps)
	}
	o := s.finish(base.terms, 0)
	report.print(os.Stdout)
	fmt.Printf("%d requests, %d emails, %d failed, %d degraded\n", o.requests, o.mails, o.failed, o.degraded)
	for i, points := range memory {
		grown := judge.Growth(points)
		fmt.Printf("node %d has %.0f MB and grew by %.1f MB in the second half, its heap by %.1f MB\n",
			i, points[len(points)-1]/(1<<20), grown/(1<<20), judge.Growth(heaps[i])/(1<<20))
		if grown > soakGrowth {
			t.Errorf("the memory of node %d grows", i)
		}
	}
	o.complain(t)
}

// weigh notes a figure of each node, in bytes.
func (s *rig) weigh(figure string, weights [][]float64) {
	for i, n := range s.nodes {
		figures, err := figuresOf(s.caller, n)
		if err != nil {
			s.t.Error(err)
			continue
		}
		weights[i] = append(weights[i], figures[figure])
	}
}

// soSmall are nodes that remember little, so that their memory finds its level within
// minutes and not once a hundred thousand mailboxes have come.
func soSmall(s *rig) []string { return append(behindProxy(s), "MAILGATE_CACHE_BYTES=1MiB") }
