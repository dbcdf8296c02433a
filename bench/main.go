// Command bench measures mailgate beside its peers and prints one table.
//
//	go run .              all of it, some minutes
//	go run . local        decisions in one process
//	go run . redis        decisions in Redis; needs redis-server in PATH
//	go run . meters       every algorithm beside its peers, in one process and in Redis
//	go run . memory       what a million mailboxes take
//	go run . mail         handing mails to a relay
//	go run . gate         the whole program: over HTTP, its start, its memory
//	go run . -profile cpu.prof denial
//
// Ours and the peers take turns, A B A B …, in one run on one machine. The ratio of a
// row is the median of the ratios of neighbouring turns, so that what else the machine
// does meanwhile weighs on both. A row without a requirement is there to be read.
//
// Mail goes into the throw-away relay of mailgate dev and, where Postfix is installed,
// into its smtp-sink as well, with its smtp-source, a bare generator in C, beside ours.
// Without Postfix those rows say so and the others stand.
//
// Below the table stands what peers leave out. An algorithm in one process is asked twice: with
// ids, which no peer there has, and counted without, as the peers do. The same is required of
// both.
//
// The exit status is 1 if a requirement was missed.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
)

// A comparison measures one thing and returns its rows of the table.
type comparison struct {
	group, name string
	measure     func() ([]row, error)
}

var comparisons = []comparison{
	{"local", "denial", localDenial},
	{"local", "admission", localAdmission},
	{"local", "growth", localGrowth},
	{"redis", "redis-denial", redisDenial},
	{"redis", "redis-full", redisFullDenial},
	{"redis", "redis-admission", redisAdmission},
	{"redis", "redis-mix", redisMix},
	{"redis", "redis-growth", redisGrowth},
	{"redis", "redis-entry", redisEntry},
	{"meters", "fixed-window", fixedWindow.inProcess},
	{"meters", "sliding-window", slidingWindow.inProcess},
	{"meters", "token-bucket", tokenBucket.inProcess},
	{"meters", "leaky-bucket", leakyBucket.inProcess},
	{"meters", "sliding-log", slidingLog.inProcess},
	{"meters", "disk-meters", metersOnDisk},
	{"meters", "redis-fixed-window", fixedWindow.throughRedis},
	{"meters", "redis-sliding-window", slidingWindow.throughRedis},
	{"meters", "redis-token-bucket", tokenBucket.throughRedis},
	{"meters", "redis-leaky-bucket", leakyBucket.throughRedis},
	{"memory", "resident", residentMemory},
	{"mail", "relay", relays},
	{"gate", "http", gateHTTP},
	{"gate", "whole", gateWhole},
	{"gate", "start", gateStart},
}

var errMissed = errors.New("a requirement was missed")

func main() {
	profile := flag.String("profile", "", "write a CPU profile of the whole run to this `file`")
	flag.Parse()
	err := withProfile(*profile, func() error { return run(flag.Args()) })
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(names []string) error {
	if role, ok := roleOf(names); ok {
		return role(names[1:])
	}
	wanted, err := choose(names)
	if err != nil {
		return err
	}
	var all []row
	for _, c := range wanted {
		fmt.Fprintf(os.Stderr, "%s …\n", c.name)
		rows, err := c.measure()
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		all = append(all, rows...)
	}
	if err := errors.Join(printTable(os.Stdout, all), printLess(os.Stdout, all)); err != nil {
		return err
	}
	if slices.ContainsFunc(all, row.missed) {
		return errMissed
	}
	return nil
}

// choose picks comparisons by their own name or their group's; no names are all.
func choose(names []string) ([]comparison, error) {
	if len(names) == 0 {
		return comparisons, nil
	}
	var chosen []comparison
	var known []string
	for _, c := range comparisons {
		if slices.Contains(names, c.name) || slices.Contains(names, c.group) {
			chosen = append(chosen, c)
		}
		known = append(known, c.group, c.name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no comparison %q; there are %s", name, strings.Join(slices.Compact(known), ", "))
		}
	}
	return chosen, nil
}

func withProfile(path string, run func() error) error {
	if path == "" {
		return run()
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return err
	}
	err = run()
	pprof.StopCPUProfile()
	return errors.Join(err, file.Close())
}
