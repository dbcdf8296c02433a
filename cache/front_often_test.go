//go:build !race

// The race detector has a sync.Pool forget a quarter of what it is given, and with it most
// of what Ristretto is told.

package cache

import (
	"fmt"
	"testing"
)

// Ristretto is told of what is read without it: a key that is asked for all the time stays
// in memory while others come that are asked for once.
func TestWhatIsReadOftenStays(t *testing.T) {
	m := openSized(t, nowhere{}, "often", Size{Entries: 200, Bytes: 1 << 20})
	set(t, m, "often", 1)
	m.hot.Wait()
	missed := 0
	for i := range 40_000 {
		for range 50 {
			if _, found := m.Recall("often", 0); !found {
				missed++
				set(t, m, "often", 1)
			}
		}
		set(t, m, fmt.Sprint("once", i), 1)
		if i%100 == 0 {
			m.hot.Wait()
		}
	}
	if missed > 30 { // without a word to Ristretto it is 100 and more
		t.Errorf("it was pushed out %d times", missed)
	}
}
