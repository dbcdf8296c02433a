package main

import (
	"context"
	"math/rand/v2"
	"runtime"

	"github.com/sethvargo/go-limiter/memorystore"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle/local"
)

// localLibrary compares the processor time of refusals in memory, requested by every processor at
// once: with go-limiter, which has one limit, the one that refuses; and among a million mailboxes
// with among a thousand. Of the million it asks about a thousand, which tells what the limiter
// costs, and about all, which tells what the processor's caches do.
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
	mine := b.inMemory()
	samples := alternate(*rounds, refusals(mine, fill(mine, some)), refusals(goLimiter, fill(goLimiter, some)))
	small, large := b.inMemory(), b.inMemory() // only now, as collecting their garbage takes time too
	everyone := fill(large, many)
	grown := alternate(*rounds, refusals(large, everyone[:few]), refusals(large, everyone), refusals(small, fill(small, few)))
	return []row{
		compare("refusal in memory, processor", "µs", "go-limiter", processor, samples[0], samples[1], atMost(3)),
		compare("refusal among 1,000,000, 1,000 asked, processor", "µs", "among 1,000", processor, grown[0], grown[2], atMost(1.5)),
		compare("refusal among 1,000,000, all asked, processor", "µs", "among 1,000", processor, grown[1], grown[2], atMost(1.5)),
	}
}

// inMemory returns our limiter with room for all mailboxes.
func (b *bench) inMemory() limiter {
	store := must(cache.Open(cache.Options{Bytes: 2 << 30}))
	b.later(func() { store.Close() })
	return ours(local.New(store.Table("mailboxes"), libraryTiers))
}

// fill has the limiter admit n mailboxes once and returns them in no order.
func fill(l limiter, n int) []string {
	order := make([]string, n)
	for i, at := range rand.Perm(n) {
		order[i] = mailbox(int64(at))
	}
	parallel(visitors, 0, n, func(i int) error { return l.want(order[i], true) })
	return order
}

// refusals returns a side that asks about mailboxes that are full.
func refusals(l limiter, order []string) side {
	return inCalls(runtime.GOMAXPROCS(0), 100_000, func(i int) error { return l.want(order[i%len(order)], false) })
}
