package main

import (
	"context"
	"math/rand/v2"
	"runtime"

	"github.com/sethvargo/go-limiter/memorystore"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle/local"
)

// localLibrary compares refusals in memory, by every processor at once: with go-limiter, and
// among a million mailboxes with among a thousand. go-limiter has one limit, the one that
// refuses.
func localLibrary(b *bench) []row {
	const some = 100_000
	first := libraryTiers.Tiers()[0]
	store := must(memorystore.New(&memorystore.Config{
		Tokens: uint64(first.Limit), Interval: first.Window, SweepMinTTL: 2 * first.Window, InitialAlloc: some,
	}))
	b.later(func() { store.Close(context.Background()) })
	goLimiter := func(mailbox string) (bool, error) {
		_, _, _, allowed, err := store.Take(context.Background(), mailbox)
		return allowed, err
	}
	samples := alternate(*rounds, refusals(b.inMemory(), some), refusals(goLimiter, some),
		refusals(b.inMemory(), many), refusals(b.inMemory(), few))
	return []row{
		compare("refusal in memory", "µs", "go-limiter", elapsed, samples[0], samples[1], atMost(3)),
		compare("refusal in memory among 1,000,000 mailboxes", "µs", "among 1,000", elapsed, samples[2], samples[3], atMost(1.5)),
	}
}

// inMemory is our limiter with room for all mailboxes.
func (b *bench) inMemory() limiter {
	store := must(cache.Open(cache.Options{Bytes: 2 << 30}))
	b.later(func() { store.Close() })
	return ours(local.New(store.Table(mailboxTable), libraryTiers, nil))
}

// refusals is a side that asks about n mailboxes in no order. It has filled each of them.
func refusals(l limiter, n int) side {
	order := make([]string, n)
	for i, at := range rand.Perm(n) {
		order[i] = mailbox(int64(at))
	}
	parallel(visitors, 0, n, func(i int) error { return l.want(order[i], true) })
	return inCalls(runtime.GOMAXPROCS(0), 100_000, func(i int) error { return l.want(order[i%n], false) })
}
