package cache

import "github.com/dgraph-io/ristretto/v2"

// Recent is a bounded memory of values that can be had elsewhere. It may lose any of them at any time,
// and a Get right after a Set may still find the value before.
type Recent[V any] = ristretto.Cache[string, V]

// remembering is what a value in a Recent takes besides its own bytes.
const remembering = 256

// NewRecent returns one for so many bytes together. The cost of a Set is the size of the value.
func NewRecent[V any](bytes int64) (*Recent[V], error) {
	return ristretto.NewCache(&ristretto.Config[string, V]{
		NumCounters:        max(bytes/64, 1024),
		MaxCost:            bytes,
		BufferItems:        64,
		IgnoreInternalCost: true,
	})
}
