package faults_test

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/throttle/throttletest"
)

var (
	onlyKind = flag.String("kind", "", "run this kind of fault alone; a trailing * matches any ending")
	onlySeed = flag.Uint64("seed", 0, "make the run with this seed alone")
	seeds    = flag.Int("seeds", 0, "how many runs of each kind; 4, if -kind is given or MAILGATE_TEST_LONG is set")
	inFull   = flag.Bool("full", false, "long runs with a heavy load")
	atOnce   = flag.Int("at-once", 8, "how many runs at once")
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", fmt.Sprint(*atOnce)) // the flag is there, and takes numbers
	os.Exit(withPrograms(m))
}

// withPrograms makes the directory that mailgate is built in.
func withPrograms(m *testing.M) int {
	dir, err := os.MkdirTemp("", "faults")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	built = dir
	return m.Run()
}

// soloRounds is how many runs a long campaign makes of a kind that has the machine to itself.
const soloRounds = 50

// row is the sum of all runs of a kind.
type row struct {
	kind                      string
	runs, requests, mails     int
	failed, degraded, slowest int
	strained, violations      int
	left                      string // why it was not run, if so
}

// table is the report of the campaign.
type table struct {
	mu   sync.Mutex
	rows map[string]*row
}

func (t *table) add(name string, o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rows[name]
	if r == nil {
		r = &row{kind: name}
		t.rows[name] = r
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

// leave notes why a kind is not run, for the report.
func (t *table) leave(name, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows[name] = &row{kind: name, left: why}
}

func (t *table) print(to io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(to, "%-26s %5s %9s %7s %7s %9s %11s %9s %11s\n",
		"kind", "runs", "requests", "emails", "failed", "degraded", "healthy ms", "strained", "violations")
	for _, k := range kinds() {
		r := t.rows[k.name]
		switch {
		case r == nil:
		case r.left != "":
			fmt.Fprintf(to, "%-26s not run: %s\n", r.kind, r.left)
		default:
			fmt.Fprintf(to, "%-26s %5d %9d %7d %7d %9d %11d %9d %11d\n",
				r.kind, r.runs, r.requests, r.mails, r.failed, r.degraded, r.slowest, r.strained, r.violations)
		}
	}
}

// chosen says whether a kind is to run.
func chosen(name string) bool {
	prefix, any := strings.CutSuffix(*onlyKind, "*")
	return *onlyKind == "" || name == *onlyKind || (any && strings.HasPrefix(name, prefix))
}

// TestCampaign runs every kind of fault, with several seeds each.
func TestCampaign(t *testing.T) {
	if *seeds == 0 && *onlyKind == "" && !throttletest.Long() {
		t.Skip("make test runs it, with -seeds")
	}
	began := time.Now()
	if _, err := mailgate(); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(kinds(), func(k *kind) bool { return chosen(k.name) }) {
		t.Fatalf("there is no kind %q", *onlyKind)
	}
	report := &table{rows: map[string]*row{}}
	t.Cleanup(func() {
		report.print(os.Stdout)
		fmt.Printf("%d s\n", int(time.Since(began).Seconds()))
	})
	size := short
	if *inFull {
		size = full
	}
	for _, k := range slices.SortedStableFunc(slices.Values(kinds()), byLength) {
		if !chosen(k.name) {
			continue
		}
		size, seeds := size, uint64(cmp.Or(*seeds, 4))
		if k.solo {
			size = short
			if *inFull {
				seeds = soloRounds
			}
		}
		for seed := uint64(1); seed <= seeds; seed++ {
			seed := cmp.Or(*onlySeed, seed)
			t.Run(fmt.Sprintf("%s/%d", k.name, seed), func(t *testing.T) {
				if !k.solo {
					t.Parallel()
				}
				campaign(t, report, k, seed, size)
			})
			if *onlySeed != 0 {
				break
			}
		}
	}
}

// byLength has the kinds first that take longest, so that the end is not one of them.
func byLength(a, b *kind) int { return cmp.Compare(b.length, a.length) }

func campaign(t *testing.T, report *table, k *kind, seed uint64, size shape) {
	if k.needs != nil {
		if why := k.needs(); why != "" {
			report.leave(k.name, why)
			t.Skip(why)
		}
	}
	o := run(t, k, seed, size)
	report.add(k.name, o)
	o.complain(t)
	if t.Failed() {
		again := fmt.Sprintf("go test -race=%s -v ./faults -run TestCampaign -kind %s -seed %d", raced(), k.name, seed)
		if size.full {
			again += " -full"
		}
		t.Log("to run it again: " + again)
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
