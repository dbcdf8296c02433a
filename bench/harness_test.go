package main

import (
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// Sides take turns, the first turn is not counted, and the ratio is that of neighbours:
// here the machine grows slower all the time and the ratio stays 2.
func TestInterleave(t *testing.T) {
	var turns []string
	slow := 0.0
	turn := func(name string, factor float64) side {
		return side{name, func() (cost, error) {
			turns = append(turns, name)
			if name == "a" {
				slow += 10
			}
			return cost{wall: slow * factor, server: 1}, nil
		}}
	}
	read, err := interleave(3, turn("a", 2), turn("b", 1))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(turns, ""); got != "abababab" {
		t.Errorf("turns %s", got)
	}
	got := read.compare("it", onTheClock, "a", "b", 1.5)
	want := row{what: "it", unit: "ns", ours: 60, peer: "b", theirs: 30, value: 2, required: 1.5, requiredSet: true}
	if got != want || !got.missed() {
		t.Errorf("row %+v, want %+v, missed", got, want)
	}
	broken := errors.New("broken")
	if _, err := interleave(3, turn("a", 1), side{"b", func() (cost, error) { return cost{}, broken }}); !errors.Is(err, broken) {
		t.Errorf("a side that fails: %v", err)
	}
}

func TestRowMissed(t *testing.T) {
	tests := []struct {
		name string
		row  row
		want bool
	}{
		{"nothing required", figure("", "", 9), false},
		{"below", figure("", "", 9).atMost(10), false},
		{"exactly", figure("", "", 10).atMost(10), false},
		{"above", figure("", "", 10.1).atMost(10), true},
		{"none where none is allowed", figure("", "", 0).atMost(0), false},
		{"one where none is allowed", figure("", "", 1).atMost(0), true},
		{"not a number", figure("", "", math.NaN()).atMost(10), true},
		{"not measured", notMeasured("", "there is no tool"), false},
	}
	for _, tt := range tests {
		if got := tt.row.missed(); got != tt.want {
			t.Errorf("%s: missed %v", tt.name, got)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(slices.Clone(tt.values)); got != tt.want {
			t.Errorf("median of %v is %v, want %v", tt.values, got, tt.want)
		}
	}
}

// Every number is handed out once, whatever the number of callers, and an error ends it.
func TestSpread(t *testing.T) {
	for _, callers := range []int{1, 3, 7, 64} {
		var seen [50]atomic.Int32
		if _, err := spread(callers, len(seen), func(i int) error { seen[i].Add(1); return nil }); err != nil {
			t.Fatal(err)
		}
		for i := range seen {
			if n := seen[i].Load(); n != 1 {
				t.Errorf("%d callers: number %d was handed out %d times", callers, i, n)
			}
		}
	}
	broken := errors.New("broken")
	if _, err := spread(3, 50, func(i int) error {
		if i == 40 {
			return broken
		}
		return nil
	}); !errors.Is(err, broken) {
		t.Errorf("an error of one caller: %v", err)
	}
}

// However many callers there are, and however long the order is that they go through, each begins
// elsewhere in it.
func TestCallersAreApart(t *testing.T) {
	for _, mailboxes := range []int{1_000, 100_000, 1_000_000} {
		for callers := 1; callers <= 130; callers++ {
			for _, calls := range []int{200_000, 1_000_000, 10 * mailboxes} {
				n := apart(callers, calls, mailboxes)
				begins := map[int]bool{}
				for caller := range callers {
					begins[caller*n/callers%mailboxes] = true
				}
				if len(begins) != callers {
					t.Errorf("%d callers begin %d calls about %d mailboxes at %d places", callers, n, mailboxes, len(begins))
				}
			}
		}
	}
}

func TestChoose(t *testing.T) {
	for names, want := range map[string]int{"": len(comparisons), "local": 3, "denial": 1, "local redis-mix": 4} {
		chosen, err := choose(strings.Fields(names))
		if err != nil || len(chosen) != want {
			t.Errorf("%q chooses %d, %v; want %d", names, len(chosen), err, want)
		}
	}
	if _, err := choose([]string{"local", "nonsense"}); err == nil || !strings.Contains(err.Error(), `"nonsense"`) {
		t.Errorf("an unknown name: %v", err)
	}
}

// What a peer leaves out is told once, and only of peers in the table. All that ours is
// compared with in one process are known to it.
func TestPrintLess(t *testing.T) {
	var text strings.Builder
	rows := []row{{peer: "throttled"}, {peer: "throttled"}, {peer: "unknown"}, notMeasured("go-limiter", "")}
	if err := printLess(&text, rows); err != nil || strings.Count(text.String(), "\n") != 1 || !strings.HasPrefix(text.String(), "throttled: no ids") {
		t.Errorf("%v:\n%s", err, text.String())
	}
	for _, a := range []algorithm{fixedWindow, slidingWindow, tokenBucket, leakyBucket, slidingLog} {
		for _, c := range a.here {
			if leavesOut[c.name] == "" {
				t.Errorf("nothing is said of %s", c.name)
			}
		}
	}
}

func TestPrintTable(t *testing.T) {
	var text strings.Builder
	err := printTable(&text, []row{
		{what: "a thing", unit: "ns", ours: 150.4, peer: "peer", theirs: 300, value: 0.5, required: 0.75, requiredSet: true},
		figure("a figure", "MB", 201).atMost(200),
		figure("another", "bytes", 12.5),
		notMeasured("a fourth", "there is no tool"),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"WHAT UNIT OURS PEER PEER'S RATIO REQUIRED",
		"a thing ns 150 peer 300 0.50 ≤ 0.75 kept",
		"a figure MB 201 ≤ 200 MISSED",
		"another bytes 12.50",
		"a fourth not measured: there is no tool",
	}, "\n")
	var lines []string
	for line := range strings.Lines(text.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("table\n%s\nwant\n%s", got, want)
	}
}
