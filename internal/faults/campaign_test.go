package faults_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
)

var (
	seeds  = flag.Int("seeds", 0, "how many runs TestCampaign_EachKind_KeepsPromises makes of each kind; without it there are none")
	inFull = flag.Bool("full", false, "long runs with a heavy load")
)

// soloRounds is how many runs a long campaign makes of a kind that has the machine to itself.
const soloRounds = 50

// TestCampaign_EachKind_KeepsPromises runs every kind of fault, with several seeds each.
func TestCampaign_EachKind_KeepsPromises(t *testing.T) {
	if *seeds == 0 {
		t.Skip("make test runs it, with -seeds")
	}
	for _, k := range kinds {
		size, rounds := short, *seeds
		switch {
		case *inFull && k.solo:
			rounds = soloRounds
		case *inFull:
			size = full
		}
		for seed := 1; seed <= rounds; seed++ {
			t.Run(fmt.Sprintf("%s/%d", k.name, seed), func(t *testing.T) {
				if !k.solo {
					t.Parallel()
				}
				o := run(t, k, uint64(seed), size)
				o.report(t)
				if t.Failed() {
					t.Logf("to repeat it: go test -race=%s -v ./internal/faults -run '^%s$' -seeds %d -full=%t", raced(), strings.ReplaceAll(t.Name(), "/", "$/^"), seed, *inFull)
				}
			})
		}
	}
}

// report says how large the run was, and fails the test with the first violations of each rule and
// their stories.
func (o *outcome) report(t *testing.T) {
	t.Helper()
	t.Logf("%d requests, %d emails, strained %t", len(o.record.Calls), len(o.record.Mails), o.record.Strained)
	ofRule := map[string]int{}
	for _, v := range o.found {
		if ofRule[v.Rule]++; ofRule[v.Rule] <= 4 {
			t.Errorf("%s: %s\n%s", v.Rule, v.What, o.record.Story(v.Subject))
		}
	}
	if len(o.found) > 0 {
		t.Errorf("violations of each rule: %v", ofRule)
		t.Log("what the nodes have logged, requests left out:\n" + o.logged)
	}
}
