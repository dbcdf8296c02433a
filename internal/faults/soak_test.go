package faults_test

import (
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/faults/judge"
)

var (
	soakFor  = flag.Duration("for", 0, "how long TestSoak_RandomFaults_MemoryStaysLevel takes; without it there is none")
	soakSeed = flag.Uint64("seed", 1, "which faults TestSoak_RandomFaults_MemoryStaysLevel has, and when")
)

// soakKinds are the faults of a soak: those that leave the nodes alive, whose memory it
// is about.
var soakKinds = []string{
	"relay-silent-ehlo", "relay-silent-rcpt", "relay-silent-dot", "relay-reset-dot", "relay-421", "relay-5xx", "relay-barred", "relay-drip",
	"redis-killed", "redis-stopped", "redis-partition", "redis-refused", "redis-reply-cut", "redis-reply-dropped",
	"redis-script-flush", "redis-full", "node-files",
}

// soakPolicy has windows longer than any soak.
const soakPolicy = "a=3/24h,b=5/72h"

// soaked is how the soak runs.
var soaked = shape{rate: 100, hold: 4 * time.Second, effect: 15 * time.Second, looks: 400}

// soakGrowth is by how much a node's memory may seem to grow in the second half.
const soakGrowth = 24 << 20

// TestSoak_RandomFaults_MemoryStaysLevel has faults inject at random for a long time, and looks whether the nodes'
// memory finds its level.
func TestSoak_RandomFaults_MemoryStaysLevel(t *testing.T) {
	if *soakFor == 0 {
		t.Skip("make soak runs it")
	}
	// On a disk: in memory there is room for all that was admitted in the longest window.
	// The nodes remember little, so that their memory finds its level within minutes and not once a
	// hundred thousand mailboxes have come.
	base := &kind{
		name: "soak", store: behindProxy, environ: []string{"MAILGATE_CACHE_BYTES=1MiB"},
		terms: judge.Terms{Alone: true, Fails: slices.Concat(noHistory, noRelay, []string{"recipient-rejected"})},
	}
	s := newRig(t, base, soakPolicy, *soakSeed, soaked)
	s.begin()
	memory := make([][]float64, len(s.nodes))
	for began := time.Now(); time.Since(began) < *soakFor; {
		name := soakKinds[s.rng.IntN(len(soakKinds))]
		k := kinds[slices.IndexFunc(kinds, func(k *kind) bool { return k.name == name })]
		s.injectFault(k, soaked.hold/2+s.randomly(soaked.hold))
		time.Sleep(time.Second + s.randomly(4*time.Second))
		for i, figure := range s.figures([]held{{name: "process_resident_memory_bytes"}}) {
			memory[i] = append(memory[i], figure.Value)
		}
	}
	o := s.finish(base.terms)
	for i, points := range memory {
		grown := judge.Growth(points)
		t.Logf("node %d has %.0f MB and grew by %.1f MB in the second half", i, points[len(points)-1]/(1<<20), grown/(1<<20))
		if grown > soakGrowth {
			t.Errorf("the memory of node %d grows", i)
		}
	}
	o.report(t)
}
