package memory

import (
	"fmt"
	"slices"
	"testing"
)

// Keys of one hash, which no test can find, are told apart all the same.
func TestKeysOfOneHash(t *testing.T) {
	keys := []string{"a", "b", "c"}
	for _, removed := range keys {
		s := &shard[int]{byHash: map[uint64]*entry[int]{}}
		for i, key := range keys {
			e := s.add(7, key)
			e.state = i
			s.keep(e, int64(10+i))
		}
		s.remove(s.find(7, removed))
		for i, key := range keys {
			e := s.find(7, key)
			if found := e != nil; found == (key == removed) || found && e.state != i {
				t.Errorf("without %s: %s is %v", removed, key, e)
			}
		}
		for len(s.due) > 0 {
			s.remove(s.due[0])
		}
		if len(s.byHash) != 0 {
			t.Errorf("%d entries are left", len(s.byHash))
		}
	}
}

// However the moments change at which entries expire, sweeping removes exactly those
// that have.
func TestSweepFindsTheExpired(t *testing.T) {
	table := newTable[int](Options{Keys: 1 << 10})
	s := &table.shards[0]
	var until []int64
	for i := range 1000 {
		e := s.add(uint64(i), fmt.Sprint(i))
		for _, moment := range []int64{int64(i*7919) % 1000, int64(i*104729) % 1000, int64(i*611953) % 1000} {
			s.keep(e, moment)
		}
		until = append(until, e.until)
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

// upTo is those of sorted moments that are not after now.
func upTo(sorted []int64, now int64) []int64 {
	n, _ := slices.BinarySearch(sorted, now+1)
	return sorted[:n]
}
