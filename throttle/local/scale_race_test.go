//go:build race

package local_test

// The race detector makes Badger and Ristretto ten times slower, and finds in a fifth
// of the flood what there is to find.
const (
	floodMailboxes = 200_000
	floodInMemory  = 10_000
)
