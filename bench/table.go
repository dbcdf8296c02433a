package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
)

// row is one line of the table: ours beside a peer's, or why it was not measured.
type row struct {
	name, unit, peer string
	ours, theirs     float64 // medians
	ratio            spread
	required         bound
	skipped          string
}

// bound is a requirement on the median ratio. The zero bound requires nothing.
type bound struct {
	symbol string // ≥ or ≤
	ratio  float64
}

func atLeast(ratio float64) bound { return bound{"≥", ratio} }
func atMost(ratio float64) bound  { return bound{"≤", ratio} }

// compare makes a row of one measure in paired rounds.
func compare(name, unit, peer string, of func(sample) float64, ours, theirs []sample, required bound) row {
	var mine, peers, ratios []float64
	for i := range ours {
		mine, peers = append(mine, of(ours[i])), append(peers, of(theirs[i]))
		ratios = append(ratios, mine[i]/peers[i])
	}
	return row{
		name: name, unit: unit, peer: peer, required: required,
		ours: spreadOf(mine).median, theirs: spreadOf(peers).median, ratio: spreadOf(ratios),
	}
}

// compareRecorded makes a row of values beside the figure of an earlier version, which must not
// be exceeded.
func compareRecorded(name, unit string, values []float64, recorded float64) row {
	return compareFixed(name, unit, "before", values, recorded, atMost(1))
}

// compareFixed makes a row of values beside one figure.
func compareFixed(name, unit, of string, values []float64, figure float64, required bound) row {
	s := spreadOf(values)
	return row{
		name: name, unit: unit, peer: of, required: required, ours: s.median, theirs: figure,
		ratio: spread{s.lowest / figure, s.median / figure, s.highest / figure},
	}
}

func (r row) missed() bool {
	if r.required.symbol == "≥" {
		return !(r.ratio.median >= r.required.ratio)
	}
	return r.required.symbol == "≤" && !(r.ratio.median <= r.required.ratio)
}

// printTable writes a table in Markdown.
func printTable(w io.Writer, rows []row) {
	fmt.Fprint(w, "| | unit | mailgate | beside | its | lowest | ratio | highest | required | |\n",
		"|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		if r.skipped != "" {
			fmt.Fprintf(w, "| %s | not measured: %s |\n", r.name, r.skipped)
			continue
		}
		required, result := "", ""
		if r.required.symbol != "" {
			required, result = fmt.Sprintf("%s %.2f", r.required.symbol, r.required.ratio), "met"
		}
		if r.missed() {
			result = "**missed**"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %.2f | **%.2f** | %.2f | %s | %s |\n", r.name, r.unit, number(r.ours),
			r.peer, number(r.theirs), r.ratio.lowest, r.ratio.median, r.ratio.highest, required, result)
	}
}

// number has at least three significant digits.
func number(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// describeMachine names what the figures depend on.
func describeMachine() string {
	cpuinfo, _ := os.ReadFile("/proc/cpuinfo")
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	redis, _ := exec.Command("redis-server", "--version").Output()
	return fmt.Sprintf("%s, %d processors, Linux %s, %s, Redis %s", first(`model name\s*: (.*)`, cpuinfo), runtime.NumCPU(),
		strings.TrimSpace(string(kernel)), runtime.Version(), first(`v=(\S+)`, redis))
}

func first(pattern string, text []byte) string {
	if match := regexp.MustCompile(pattern).FindSubmatch(text); match != nil {
		return string(match[1])
	}
	return "unknown"
}

// describeLoad returns the load average of the last minute: what else the machine does.
func describeLoad() string {
	average, _ := os.ReadFile("/proc/loadavg")
	return first(`^(\S+)`, average)
}
