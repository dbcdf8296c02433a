// Command bench measures mailgate as a whole program beside other whole programs, and its
// limiters beside other libraries, and prints one table.
//
//	go run .                    all of it, a few minutes
//	go run . refused admitted   some of it: refused, admitted, steady, forged, smtp, redis, start, million, suppressed, lists, traced, cluster, local, attack
//
// Both sides of a row alternate in short rounds, A B A B …, in one run on one machine. A row shows
// the lowest, the median and the highest ratio of neighbouring rounds. The load comes from this
// process, which is also the relay that takes the emails.
//
// It needs Linux, redis-server and exim4. The exit status is 1 if a requirement was missed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// comparison measures one thing and returns its rows of the table.
type comparison struct {
	name    string
	measure func(*bench) []row
}

var comparisons = []comparison{
	{"refused", refusedSends},
	{"admitted", admittedSends},
	{"steady", steadily},
	{"forged", forgedCalls},
	{"smtp", submissions},
	{"redis", decisionsOnRedis},
	{"start", starts},
	{"million", millionMailboxes},
	{"suppressed", suppressedMillion},
	{"lists", longLists},
	{"traced", tracedSends},
	{"cluster", clusterLibrary},
	{"local", localLibrary},
	{"attack", attacks},
}

var (
	mailgatePath = flag.String("mailgate", "", "measure this `program` instead of building ../cmd/mailgate")
	rounds       = flag.Int("rounds", 7, "rounds of each side")
	length       = flag.Duration("length", 700*time.Millisecond, "length of a round")
)

var errMissed = errors.New("a requirement was missed")

// bench is what the comparisons share.
type bench struct {
	ctx     context.Context
	dir     string // for programs, data and logs
	cleanup []func()
}

// later makes close run at the end of the comparison.
func (b *bench) later(close func()) { b.cleanup = append(b.cleanup, close) }

func (b *bench) close() {
	for _, close := range slices.Backward(b.cleanup) {
		close()
	}
	b.cleanup = nil
}

// failure is an error that ends a comparison. A comparison cannot go on after an error, so check
// panics with it and bench.run recovers.
type failure struct{ error }

func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string) error {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b, table, known, before := &bench{ctx: ctx, dir: dir}, []row(nil), 0, describeLoad()
	for _, c := range comparisons {
		if len(names) > 0 && !slices.Contains(names, c.name) {
			continue
		}
		known++
		fmt.Fprintf(os.Stderr, "%s …\n", c.name)
		rows, failed := b.run(c)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		table, err = append(table, rows...), errors.Join(err, failed)
	}
	if known < len(names) {
		return fmt.Errorf("%d of the comparisons %q are not there", len(names)-known, names)
	}
	fmt.Printf("%s; %s; load %s before, %s after\n\n", time.Now().Format(time.DateOnly), describeMachine(), before, describeLoad())
	printTable(os.Stdout, table)
	if slices.ContainsFunc(table, row.missed) {
		err = errors.Join(err, errMissed)
	}
	return err
}

// run returns the rows of a comparison. One that fails has no rows, and the others go on.
func (b *bench) run(c comparison) (rows []row, err error) {
	defer b.close()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: %w", c.name, r.(failure).error)
			rows = []row{{name: c.name, skipped: "it failed"}}
		}
	}()
	return c.measure(b), nil
}
