package faults_test

import (
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
)

var (
	seeds  = flag.Int("seeds", 0, "how many runs TestCampaign makes of each kind; without it there are none")
	inFull = flag.Bool("full", false, "long runs with a heavy load")
)

// soloRounds is how many runs a long campaign makes of a kind that has the machine to itself.
const soloRounds = 50

// TestCampaign runs every kind of fault, with several seeds each.
func TestCampaign(t *testing.T) {
	if *seeds == 0 {
		t.Skip("make test runs it, with -seeds")
	}
	report := &table{rows: map[string]*row{}}
	t.Cleanup(func() { report.print(os.Stdout) })
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
				report.add(k.name, o)
				o.complain(t)
				if t.Failed() {
					t.Logf("to repeat it: go test -race=%s -v ./faults -run '^%s$' -seeds %d -full=%t", raced(), t.Name(), seed, *inFull)
				}
			})
		}
	}
}

// complain fails the test with the first violations of each rule and their stories.
func (o *outcome) complain(t *testing.T) {
	t.Helper()
	told, ofRule := map[string]bool{}, map[string]int{}
	for _, v := range o.found {
		if ofRule[v.Rule]++; ofRule[v.Rule] > 4 {
			continue
		}
		story := ""
		if v.Subject != "" && !told[v.Subject] {
			story, told[v.Subject] = "\n"+o.record.Story(v.Subject), true
		}
		t.Errorf("%s: %s%s", v.Rule, v.What, story)
	}
	if len(o.found) > 0 {
		t.Errorf("violations of each rule: %v", ofRule)
		t.Log("what the nodes have logged, requests left out:\n" + o.logged)
	}
}

// table is the report of the campaign.
type table struct {
	mu   sync.Mutex
	rows map[string]*row
}

// row is the sum of all runs of a kind.
type row struct {
	runs, requests, mails     int
	failed, degraded, slowest int
	strained, violations      int
}

func (t *table) add(kind string, o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rows[kind]
	if r == nil {
		r = &row{}
		t.rows[kind] = r
	}
	r.runs++
	r.requests += o.requests
	r.mails += o.mails
	r.failed += o.failed
	r.degraded += o.degraded
	r.slowest = max(r.slowest, int(o.healed.Milliseconds()))
	r.violations += len(o.found)
	if o.strained {
		r.strained++
	}
}

func (t *table) print(to io.Writer) {
	fmt.Fprintf(to, "%-22s %5s %9s %7s %7s %9s %11s %9s %11s\n",
		"kind", "runs", "requests", "emails", "failed", "degraded", "healthy ms", "strained", "violations")
	for _, k := range kinds {
		if r := t.rows[k.name]; r != nil {
			fmt.Fprintf(to, "%-22s %5d %9d %7d %7d %9d %11d %9d %11d\n",
				k.name, r.runs, r.requests, r.mails, r.failed, r.degraded, r.slowest, r.strained, r.violations)
		}
	}
}
