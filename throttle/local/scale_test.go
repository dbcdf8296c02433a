//go:build !race

package local_test

// How long the flood is.
const (
	floodMailboxes = 1_000_000
	floodInMemory  = 50_000
)

// What is allocated to put a key together that is only asked for.
const allocsToSpellAKey = 0
