package main

import (
	"slices"
	"sync"
	"syscall"
	"time"
)

// sample is what one round of one side measured.
type sample struct {
	rate      float64    // operations a second
	processor float64    // microseconds for an operation, user and system; 0: not measured
	memory    float64    // resident megabytes at the end; 0: not measured
	redis     float64    // microseconds of Redis for an operation; 0: not measured
	commands  float64    // commands and calls of scripts that Redis ran for an operation; 0: not measured
	ranks     [3]float64 // milliseconds that 50, 99 and 99.9 % of the operations took at most; 0: not measured
}

func rate(s sample) float64      { return s.rate }
func elapsed(s sample) float64   { return 1e6 / s.rate } // microseconds for an operation
func processor(s sample) float64 { return s.processor }
func commands(s sample) float64  { return s.commands }
func ofRedis(s sample) float64   { return s.redis }

// side is one contender: it runs one round.
type side func() sample

// alternate runs the sides in rounds, A B A B …, and returns the samples of each. It does not
// count the first round of each.
func alternate(rounds int, sides ...side) [][]sample {
	samples := make([][]sample, len(sides))
	for round := range rounds + 1 {
		for i, side := range sides {
			if s := side(); round > 0 {
				samples[i] = append(samples[i], s)
			}
		}
	}
	return samples
}

// measures returns one measure of some samples.
func measures(samples []sample, of func(sample) float64) (all []float64) {
	for _, s := range samples {
		all = append(all, of(s))
	}
	return all
}

// spread is the lowest, the median and the highest of some values.
type spread struct{ lowest, median, highest float64 }

func spreadOf(values []float64) spread {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return spread{sorted[0], (sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[n-1]}
}

// parallel calls do with from to from+n-1, a share from each of the callers, and returns calls a
// second.
func parallel(callers, from, n int, do func(i int) error) float64 {
	var wait sync.WaitGroup
	errs := make([]error, callers)
	began := time.Now()
	for caller := range callers {
		wait.Go(func() {
			for i := from + caller*n/callers; i < from+(caller+1)*n/callers && errs[caller] == nil; i++ {
				errs[caller] = do(i)
			}
		})
	}
	wait.Wait()
	took := time.Since(began)
	for _, err := range errs {
		check(err)
	}
	return float64(n) / took.Seconds()
}

// inCalls returns a side that makes n calls in a round, each with a number of its own.
func inCalls(callers, n int, do func(i int) error) side {
	from := 0
	return func() sample {
		from += n
		used := ownProcessor()
		rate := parallel(callers, from-n, n, do)
		return sample{rate: rate, processor: float64((ownProcessor() - used).Microseconds()) / float64(n)}
	}
}

// ownProcessor returns the processor time that this process has used.
func ownProcessor() time.Duration {
	var u syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
