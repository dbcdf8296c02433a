//go:build race

package local_test

// The race detector makes Badger and Ristretto ten times slower, and finds in a tenth
// of the flood what there is to find.
const (
	floodMailboxes = 100_000
	floodInMemory  = 5_000
)

// The race detector has a sync.Pool forget a quarter of what it is given.
const allocsToSpellAKey = 1
