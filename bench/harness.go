package main

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"text/tabwriter"
	"time"
)

// A side is one contender. A round is one turn of it and returns what an operation
// cost.
type side struct {
	name  string
	round func() (cost, error)
}

// A cost is what one operation took, in the mean of a round.
type cost struct {
	wall   float64 // nanoseconds on the clock, divided by operations, over all callers
	server float64 // microseconds inside Redis, by its own account
}

// The metrics that rows compare.
var (
	onTheClock  = metric{"ns", func(c cost) float64 { return c.wall }}
	insideRedis = metric{"server µs", func(c cost) float64 { return c.server }}
)

type metric struct {
	unit string
	of   func(cost) float64
}

// readings are the costs of every round, by side.
type readings map[string][]cost

// interleave lets the sides take turns. A first turn of each is not counted.
func interleave(rounds int, sides ...side) (readings, error) {
	read := readings{}
	for round := range rounds + 1 {
		for _, s := range sides {
			c, err := s.round()
			if err != nil {
				return nil, fmt.Errorf("%s, round %d: %w", s.name, round, err)
			}
			if round > 0 {
				read[s.name] = append(read[s.name], c)
			}
		}
	}
	return read, nil
}

// A row is one line of the table.
type row struct {
	what, unit  string
	ours        float64
	peer        string
	theirs      float64
	value       float64 // what is required of: a ratio, or a plain figure
	plain       bool    // value is a figure and not a ratio
	required    float64 // at most
	requiredSet bool    // whether anything is; a required 0 is the strictest
	unmeasured  string  // why there are no numbers; nothing is then required
}

// compare makes the row of two sides: medians, and the median of the paired ratios,
// which must be at most the required one. 0 requires nothing.
func (r readings) compare(what string, m metric, ours, peer string, required float64) row {
	return row{
		what: what, unit: m.unit,
		ours: r.median(ours, m), peer: peer, theirs: r.median(peer, m),
		value: r.ratio(ours, peer, m), required: required, requiredSet: required > 0,
	}
}

func (r readings) median(side string, m metric) float64 {
	var values []float64
	for _, c := range r[side] {
		values = append(values, m.of(c))
	}
	return median(values)
}

func (r readings) ratio(ours, peer string, m metric) float64 {
	var ratios []float64
	for i, c := range r[ours] {
		ratios = append(ratios, m.of(c)/m.of(r[peer][i]))
	}
	return median(ratios)
}

func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// figure is a row about ours alone.
func figure(what, unit string, value float64) row {
	return row{what: what, unit: unit, ours: value, value: value, plain: true}
}

// atMost adds a requirement to a figure.
func (r row) atMost(required float64) row {
	r.required, r.requiredSet = required, true
	return r
}

// notMeasured is a row in the place of one that this machine cannot measure.
func notMeasured(what, why string) row { return row{what: what, unmeasured: why} }

func (r row) missed() bool { return r.requiredSet && !(r.value <= r.required) }

func printTable(w io.Writer, rows []row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WHAT\tUNIT\tOURS\tPEER\tPEER'S\tRATIO\tREQUIRED\t")
	for _, r := range rows {
		if r.unmeasured != "" {
			fmt.Fprintf(t, "%s\tnot measured: %s\n", r.what, r.unmeasured)
			continue
		}
		theirs, ratio, required, verdict := "", "", "", ""
		if !r.plain {
			theirs, ratio = number(r.theirs), fmt.Sprintf("%.2f", r.value)
		}
		if r.requiredSet {
			required, verdict = fmt.Sprintf("≤ %g", r.required), "kept"
		}
		if r.missed() {
			verdict = "MISSED"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.what, r.unit, number(r.ours), r.peer, theirs, ratio, required, verdict)
	}
	return t.Flush()
}

func number(v float64) string {
	if v >= 100 || v == float64(int(v)) {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// spread calls do with 0 to n-1, each of the callers taking a run of them, and
// returns the nanoseconds on the clock for each. It stops at the first error.
func spread(callers, n int, do func(i int) error) (float64, error) {
	var done sync.WaitGroup
	errs := make([]error, callers)
	ready := make(chan struct{})
	for caller := range callers {
		done.Go(func() {
			<-ready
			for i := caller * n / callers; i < (caller+1)*n/callers; i++ {
				if errs[caller] = do(i); errs[caller] != nil {
					return
				}
			}
		})
	}
	began := time.Now()
	close(ready)
	done.Wait()
	elapsed := time.Since(began)
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return float64(elapsed.Nanoseconds()) / float64(n), nil
}
