package ledger

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// The sum of two nodes' hours is that of one node that did all, however long ago the other told it; only the last minutes may
// lack what the other has done since.
func TestRates_Add_AsOfOneNode(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 50 {
		var here, there, one Hour
		began := int64(1_795_176_000_000) + random.Int64N(100_000)
		then := began + 3_700_000
		for at := began; at < then; at += random.Int64N(2500) {
			what := hour(1 + random.IntN(chartLines))
			one.count(at, what)
			if random.IntN(2) == 0 {
				here.count(at, what)
			} else {
				there.count(at, what)
			}
		}
		now := then + random.Int64N(15_000)
		sum, want := here.Rates(now), one.Rates(now)
		sum.Add(there.Rates(then), now, then)
		for what, got := range sum.lines() {
			if got, want := got[:chartPoints-2], want.lines()[what][:chartPoints-2]; !reflect.DeepEqual(got, want) {
				t.Fatalf("round %d, %d: %v, want %v", round, what, got, want)
			}
		}
		if now/1000 == then/1000 && !reflect.DeepEqual(sum, want) {
			t.Errorf("round %d: the last minutes are %v, want %v", round, sum, want)
		}
	}
}

// The minute that ends now has what another node told of it a step ago at most.
func TestRates_Add_LastMinute_AStepOld(t *testing.T) {
	const then, step = 1_795_176_000_000, chartStep * 1000
	var there Hour
	there.count(then, sentOne)
	for ago, want := range map[int64]int{0: 1, step: 1, step + 1: 0} {
		sum := new(Hour).Rates(then + ago)
		sum.Add(there.Rates(then), then+ago, then)
		if got := sum.Sent[chartPoints-1]; got != want {
			t.Errorf("told %d ms ago: %d in the last minute, want %d", ago, got, want)
		}
	}
}
