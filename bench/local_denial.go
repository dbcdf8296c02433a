package main

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"

	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// localDenial compares a no in one process: 100,000 mailboxes, each admitted once and
// then asked for in random order by every core, under the machine's clock. The peer
// keeps the three tiers in three stores and stops at the first that says no.
func localDenial() (rows []row, err error) {
	const peer = "go-limiter"
	all := mailboxes(100_000)
	order := shuffled(all)
	stores, err := openStores()
	if err != nil {
		return nil, err
	}
	err = withLocal(local.Options{Policy: throttle.DefaultPolicy()}, func(limiter *local.Limiter) error {
		// Both must be done before the first minute is over; a yes after that is an error.
		if _, err := spread(fillers, len(all), func(i int) error { return admitted(limiter, all[i]) }); err != nil {
			return err
		}
		if _, err := spread(fillers, len(all), func(i int) error { return stores.take(all[i], true) }); err != nil {
			return err
		}
		read, err := interleave(9,
			side{ours, askAll(order, func(mailbox string) error { return denied(limiter, mailbox) })},
			side{peer, askAll(order, func(mailbox string) error { return stores.take(mailbox, false) })},
		)
		if err != nil {
			return err
		}
		rows = append(rows,
			read.compare("a denial in one process", onTheClock, ours, peer, 0.75),
			figure("allocations of a denial", "", allocations(limiter, order)).atMost(0))
		return nil
	})
	return rows, err
}

// askAll is a round in which all cores ask about every mailbox ten times or so.
func askAll(order []string, ask func(mailbox string) error) func() (cost, error) {
	return askInOrder(runtime.GOMAXPROCS(0), 10*len(order), order, ask)
}

// askInOrder is a round of so many calls or so, about the mailboxes in this order.
func askInOrder(callers, calls int, order []string, ask func(mailbox string) error) func() (cost, error) {
	n := apart(callers, calls, len(order))
	return func() (cost, error) {
		wall, err := spread(callers, n, func(i int) error { return ask(order[i%len(order)]) })
		return cost{wall: wall}, err
	}
}

// apart is about so many calls that each caller's begin at another place in the order of the
// mailboxes. Else two would go through it side by side, and always ask about the same one.
func apart(callers, calls, mailboxes int) int {
	if calls < mailboxes {
		return calls
	}
	return (calls/mailboxes/callers*callers + 1) * mailboxes
}

func allocations(limiter throttle.Limiter, order []string) float64 {
	next := 0
	return testing.AllocsPerRun(10_000, func() {
		if err := denied(limiter, order[next%len(order)]); err != nil {
			panic(err)
		}
		next++
	})
}

// stores are the peer's three tiers, shortest window first.
type stores []limiter.Store

func openStores() (stores, error) {
	var all stores
	for _, tier := range throttle.DefaultPolicy().Tiers() {
		store, err := memorystore.New(&memorystore.Config{
			Tokens:       uint64(tier.Limit),
			Interval:     time.Duration(tier.Window) * time.Millisecond,
			SweepMinTTL:  48 * time.Hour,
			InitialAlloc: 100_000,
		})
		if err != nil {
			return nil, err
		}
		all = append(all, store)
	}
	return all, nil
}

// take asks the stores in turn, and insists on an answer.
func (s stores) take(mailbox string, want bool) error {
	allowed := true
	for _, store := range s {
		_, _, _, ok, err := store.Take(context.Background(), mailbox)
		if err != nil {
			return err
		}
		if !ok {
			allowed = false
			break
		}
	}
	switch {
	case allowed && !want:
		return errAdmitted
	case !allowed && want:
		return errDenied
	}
	return nil
}
