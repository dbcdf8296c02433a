package memory

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Keys that share a hash, which no test can find, are told apart all the same, and those
// that share a slot are found however the others come and go.
func TestSlots(t *testing.T) {
	const seed, keys = 4, 60
	random := rand.New(rand.NewPCG(seed, 0))
	var s shard[int]
	known := map[fingerprint]int{}
	for step := range 20_000 {
		k := fingerprint{first: shards * random.Uint64N(keys/4), second: random.Uint64N(4)}
		e := s.slots.find(k)
		if state, ok := known[k]; ok != (e != nil) || ok && state != e.state {
			t.Fatalf("seed %d step %d: found %v, want %d, %v", seed, step, e, state, ok)
		}
		if e == nil {
			e = s.add(k)
			e.state, known[k] = step, step
			s.keep(e, random.Int64N(100))
		} else if random.IntN(3) > 0 {
			s.remove(e)
			delete(known, k)
		}
	}
	for len(s.due) > 0 {
		s.remove(s.due[0])
	}
	if slices.ContainsFunc(s.slots, func(at slot[int]) bool { return at.entry != nil }) || len(s.slots) > 2*keys*4/3 {
		t.Errorf("something is left, in %d slots: %v", len(s.slots), s.slots)
	}
}

// However the moments change at which entries expire, sweeping removes exactly those
// that have.
func TestSweepFindsTheExpired(t *testing.T) {
	table := newTable(Options{Keys: 1 << 10}, itself)
	s := &table.shards[0]
	var until []int64
	for i := range 1000 {
		e := s.add(fingerprint{first: uint64(i), second: uint64(i)})
		for _, moment := range []int64{int64(i*7919) % 1000, int64(i*104729) % 1000, int64(i*611953) % 1000} {
			e.state = moment
			table.keep(s, e)
		}
		until = append(until, e.state)
	}
	slices.Sort(until)
	left := len(until)
	for now := range int64(1001) {
		for table.sweep(s, now) {
			left--
		}
		if want := len(until) - len(upTo(until, now)); left != want {
			t.Fatalf("at %d %d are left, want %d", now, left, want)
		}
	}
}

// itself is the moment that a state stands for.
func itself(moment *int64) int64 { return *moment }

// upTo is those of sorted moments that are not after now.
func upTo(sorted []int64, now int64) []int64 {
	n, _ := slices.BinarySearch(sorted, now+1)
	return sorted[:n]
}

// Somebody reads the clock, waits for the lock, and is late: another has swept by a later
// clock what had not expired by his. He decides by a clock that is as late.
func TestALateCallerReadsTheClockAgain(t *testing.T) {
	var table *table[int64]
	readings := 0
	table = newTable(Options{Keys: 8, Now: func() int64 {
		if readings++; readings == 1 {
			for i := range table.shards {
				table.sweep(&table.shards[i], 20) // meanwhile, by another
			}
			return 9
		}
		return 21
	}}, itself)
	s := &table.shards[table.fingerprint("key").first%shards]
	old := s.add(table.fingerprint("key"))
	old.state = 20
	table.keep(s, old)
	_, e, now := table.lock("key")
	if e != nil || now != 21 {
		t.Errorf("%v at %d, want nothing at 21", e, now)
	}
}
