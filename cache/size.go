package cache

import "fmt"

// A Size is how much a Map keeps in memory. The disk keeps everything; what does not
// fit here is only slower to read. A value that grows counts at once, and room is made for
// it when other keys come.
type Size struct {
	Entries int64 // at most so many
	Bytes   int64 // and at most about so many bytes
}

// DefaultSize is 110,000 entries in 28 MB.
func DefaultSize() Size { return Size{Entries: 110_000, Bytes: 28 << 20} }

func (s Size) check() error {
	if s.Entries < 1 || s.Bytes < 1 {
		return fmt.Errorf("a cache size must be at least 1 entry and 1 byte, not %d and %d", s.Entries, s.Bytes)
	}
	return nil
}

// entryOverhead is what an entry takes beside its value: its slot in Ristretto's map,
// its place in the eviction policy, a place in the front, and the spare room of it all.
// Measured from 20,000 to 1,000,000 entries it is 212 to 277 bytes, by how long ago the
// maps have doubled.
const entryOverhead = 250

// cost counts an entry so that one number keeps both limits.
func (s Size) cost(weight int) int64 {
	share := (s.Bytes-1)/s.Entries + 1
	return max(int64(weight)+entryOverhead, share)
}

// most is how many entries can be in memory at once.
func (s Size) most() int64 { return max(1, min(s.Entries, s.Bytes/entryOverhead)) }
